// All ranks of a group call its collectives in one order, and PyTorch numbers them. So a job that hangs
// has a first number at which ranks differ: in what they call, or in whether they have called it. A rank
// that has not called it may wait elsewhere itself, so each rank's own open call is named, too; a rank
// without one has stopped in its own code. The recorder keeps the last calls only: numbers that one rank
// has overwritten are not compared.
#include "lanescope/ranks/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "lanescope/base/sort_rows.h"
#include "lanescope/ranks/dump_groups.h"
#include "lanescope/ranks/roster.h"

namespace lanescope::ranks {
namespace {

constexpr std::int64_t kLeastRecordedWaitNs = 1'000'000'000;

class HangFinder {
 public:
  explicit HangFinder(HangReport report) : report_(std::move(report)), dumps_(report_.dumps) {}

  HangReport run() {
    for (const auto& [name, group] : dumps_.groups()) check_group(name, group);
    find_missing_dumps();
    sort_rows(report_.findings.begin(), report_.findings.end(),
              [](const HangFinding& a, const HangFinding& b) { return a.kind < b.kind; });
    report_.ranks = dumps_.ranks();
    report_.calls = dumps_.calls();
    report_.groups = dumps_.groups().size();
    return std::move(report_);
  }

 private:
  static std::string group_text(const NamedGroup& group) {
    if (group.second.empty() || group.second == "undefined") return group.first;
    return fmt::format("{} ({})", group.first, group.second);
  }

  void add(HangKind kind, std::vector<std::int64_t> ranks, const NamedGroup& group,
           std::int64_t sequence, std::string text) {
    report_.findings.push_back(
        {kind, std::move(ranks), group_text(group), sequence, std::move(text)});
  }

  void check_group(const NamedGroup& name, const DumpGroup& group) {
    check_pairs(name, group);
    // Ranks of the group that have a dump but no call in it have stopped before its first one, or lost it.
    std::int64_t first = INT64_MIN, last = INT64_MIN;
    for (const auto& [rank, member] : group.members) {
      if (member.calls.empty()) continue;
      last = std::max(last, member.calls.rbegin()->first);
      if (!report_.dumps[member.dump].is_whole)
        first = std::max(first, member.calls.begin()->first);
    }
    if (last == INT64_MIN) return;
    std::set<std::int64_t> sequences;
    for (const auto& [rank, member] : group.members)
      for (const auto& [sequence, calls] : member.calls)
        if (sequence >= first) sequences.insert(sequence);
    for (const std::int64_t sequence : sequences)
      if (check_call(name, group, sequence)) return;
  }

  // True: the group's first difference is found.
  bool check_call(const NamedGroup& name, const DumpGroup& group, std::int64_t sequence) {
    std::map<std::string, std::vector<std::int64_t>> by_sign;
    std::vector<std::int64_t> without, waiting, all;
    for (const std::int64_t rank : group.with_dump) {
      const auto member = group.members.find(rank);
      const std::vector<std::size_t>* calls = group.calls_at(rank, sequence);
      if (calls == nullptr) {
        // Not in the dump's window although later ones are: unknown.
        const bool later = member != group.members.end() && !member->second.calls.empty() &&
                           member->second.calls.rbegin()->first > sequence;
        const bool lost = member == group.members.end() && !dumps_.dump(rank).is_whole;
        if (!later && !lost) without.push_back(rank);
        continue;
      }
      std::string sign;
      bool is_open = false;
      for (const std::size_t at : *calls) {
        sign += sign_of(dumps_.call(member->second, at)) + ";";
        is_open |= dumps_.call(member->second, at).state != CallState::kCompleted;
      }
      by_sign[sign].push_back(rank);
      all.push_back(rank);
      if (is_open) waiting.push_back(rank);
    }
    if (by_sign.size() > 1) return add_mismatch(name, group, sequence, by_sign);
    if (waiting.empty() || by_sign.empty()) return false;
    if (dumps_.dump(waiting.front()).is_recording)
      return !without.empty() && add_left_behind(name, group, sequence, without, waiting);
    if (!without.empty()) return add_not_called(name, group, sequence, without, waiting);
    return add_not_ended(name, group, sequence, waiting, all);
  }

  static std::string from_text(const FlightCall& call) {
    return call.place.empty() ? "" : ", called in " + call.place;
  }

  bool add_mismatch(const NamedGroup& name, const DumpGroup& group, std::int64_t sequence,
                    const std::map<std::string, std::vector<std::int64_t>>& by_sign) {
    // Most ranks are right; with as many on both sides, the side of the first rank.
    const auto agreed =
        std::max_element(by_sign.begin(), by_sign.end(), [](const auto& a, const auto& b) {
          return std::pair(a.second.size(), -a.second.front()) <
                 std::pair(b.second.size(), -b.second.front());
        });
    std::vector<std::int64_t> others;
    std::string text = fmt::format("collective {} of group {}: ", sequence, group_text(name));
    for (auto at = by_sign.begin(); at != by_sign.end(); ++at) {
      if (at == agreed) continue;
      const FlightCall& found = dumps_.call_of(group, at->second.front(), sequence);
      text +=
          fmt::format("{} {} {}{}; ", named_ranks(at->second),
                      at->second.size() == 1 ? "calls" : "call", found.text(), from_text(found));
      others.insert(others.end(), at->second.begin(), at->second.end());
    }
    const FlightCall& usual = dumps_.call_of(group, agreed->second.front(), sequence);
    text +=
        fmt::format("{} {} {}{}", named_ranks(agreed->second),
                    agreed->second.size() == 1 ? "calls" : "call", usual.text(), from_text(usual));
    std::sort(others.begin(), others.end());
    add(HangKind::kMismatch, std::move(others), name, sequence, std::move(text));
    return true;
  }

  // What a rank that is missed does instead.
  std::string instead_text(std::int64_t rank) const {
    const HangRank& state = dumps_.state(rank);
    const FlightDump& dump = dumps_.dump(rank);
    if (state.open) {
      const FlightCall& open = dump.calls[*state.open];
      const FlightGroup& group = dump.groups[open.group];
      return fmt::format("Rank {} waits in {} {} of group {} itself ({}{})", rank,
                         open.point_to_point ? "call" : "collective", open.sequence,
                         group_text({group.name, group.description}), open.text(), from_text(open));
    }
    if (!state.ended) return fmt::format("Rank {} is in no collective, and has called none", rank);
    const FlightCall& last = dump.calls[*state.ended];
    return fmt::format("Rank {} is in no collective: it stopped in its own code after {} {} ({}{})",
                       rank, last.point_to_point ? "call" : "collective", last.sequence,
                       last.text(), from_text(last));
  }

  bool add_not_called(const NamedGroup& name, const DumpGroup& group, std::int64_t sequence,
                      const std::vector<std::int64_t>& without,
                      const std::vector<std::int64_t>& waiting) {
    const FlightCall& open = dumps_.call_of(group, waiting.front(), sequence);
    std::string text = fmt::format(
        "collective {} of group {}: {} {} not called {}, in which {} {}{}{}. {}", sequence,
        group_text(name), named_ranks(without), without.size() == 1 ? "has" : "have", open.text(),
        named_ranks(waiting), waiting.size() == 1 ? "waits" : "wait", from_text(open),
        open.timed_out ? " (timed out)" : "", instead_text(without.front()));
    if (without.size() > 1) text += "; the table below has the other ranks";
    add(HangKind::kNotCalled, without, name, sequence, std::move(text));
    return true;
  }

  // How long before the end of a recording one of its calls began.
  std::int64_t since_ns(std::int64_t rank, const FlightCall& call) const {
    return dumps_.dump(rank).end_ns - call.created_ns;
  }

  // Recordings: a rank's last call may have ended. A rank that calls nothing more for a second waits; less
  // is a CPU that ran ahead when the job was killed.
  bool add_left_behind(const NamedGroup& name, const DumpGroup& group, std::int64_t sequence,
                       const std::vector<std::int64_t>& without,
                       const std::vector<std::int64_t>& waiting) {
    const FlightCall& open = dumps_.call_of(group, waiting.front(), sequence);
    const std::int64_t waited = since_ns(waiting.front(), open);
    if (waited < kLeastRecordedWaitNs) return false;
    std::string text = fmt::format(
        "collective {} of group {}: {} {} not called {}, the last call of {}, {:.1f} s before the "
        "recording ends. ",
        sequence, group_text(name), named_ranks(without), without.size() == 1 ? "has" : "have",
        open.text(), named_ranks(waiting), static_cast<double>(waited) / 1e9);
    const HangRank& state = dumps_.state(without.front());
    if (!state.open) {
      text += fmt::format("Rank {} has called none", state.rank);
    } else {
      const FlightCall& last = dumps_.dump(state.rank).calls[*state.open];
      text += fmt::format("The last call of rank {} is collective {} ({}), {:.1f} s before its end",
                          state.rank, last.sequence, last.text(),
                          static_cast<double>(since_ns(state.rank, last)) / 1e9);
    }
    add(HangKind::kNotCalled, without, name, sequence, std::move(text));
    return true;
  }

  bool add_not_ended(const NamedGroup& name, const DumpGroup& group, std::int64_t sequence,
                     const std::vector<std::int64_t>& waiting,
                     const std::vector<std::int64_t>& all) {
    const FlightCall& open = dumps_.call_of(group, waiting.front(), sequence);
    add(HangKind::kNotEnded, waiting, name, sequence,
        fmt::format("collective {} of group {}: {} {} called {}, and it has not ended on {}{}",
                    sequence, group_text(name), named_ranks(all), all.size() == 1 ? "has" : "have",
                    open.text(), named_ranks(waiting),
                    open.timed_out ? " (timed out): look at the network and at the GPUs"
                                   : ". A job that runs looks like this, too"));
    return true;
  }

  // The n-th receive belongs to the n-th send; only whole dumps can be counted.
  void check_pairs(const NamedGroup& name, const DumpGroup& group) {
    using Key = std::tuple<bool, std::int64_t, std::int64_t>;  // is a send, from, to: in the group
    std::map<Key, std::vector<std::pair<std::int64_t, std::size_t>>> calls;
    std::map<std::int64_t, std::int64_t> job_rank;
    for (std::size_t i = 0; i < group.ranks.size(); ++i)
      job_rank[static_cast<std::int64_t>(i)] = group.ranks[i];
    for (const auto& [rank, member] : group.members) {
      if (!report_.dumps[member.dump].is_whole) return;
      for (const std::size_t at : member.pairs)
        if (const auto pair = pair_of(dumps_.call(member, at).name))
          calls[{pair->is_send, pair->is_send ? pair->own : pair->other,
                 pair->is_send ? pair->other : pair->own}]
              .emplace_back(rank, at);
    }
    for (const auto& [key, own] : calls) {
      const auto& [is_send, from, to] = key;
      const auto partner = calls.find({!is_send, from, to});
      const std::size_t there = partner == calls.end() ? 0 : partner->second.size();
      const std::int64_t other_in_group = is_send ? to : from;
      const auto other = job_rank.find(other_in_group);
      if (own.size() <= there || other == job_rank.end() || !group.members.contains(other->second))
        continue;
      const auto& [rank, at] = own[there];
      const FlightCall& open = dumps_.call(group.members.at(rank), at);
      if (open.state == CallState::kCompleted) continue;
      add(HangKind::kNotPaired, {other->second}, name, open.sequence,
          fmt::format(
              "{} of group {}: rank {} waits in it{}, and rank {} has not called its {}. {}",
              open.text(), group_text(name), rank, from_text(open), other->second,
              is_send ? "recv" : "send", instead_text(other->second)));
    }
  }

  void find_missing_dumps() {
    std::set<std::int64_t> missing;
    for (const auto& [name, group] : dumps_.groups())
      for (const std::int64_t rank : group.ranks)
        if (!dumps_.has_dump(rank)) missing.insert(rank);
    if (missing.empty()) return;
    std::vector<std::int64_t> ranks(missing.begin(), missing.end());
    std::string text = fmt::format(
        "there is no dump of {}: what {} did is unknown. A process that crashed or was killed "
        "writes none",
        named_ranks(ranks), ranks.size() == 1 ? "it" : "they");
    report_.findings.push_back({HangKind::kNoDump, std::move(ranks), "", -1, std::move(text)});
  }

  HangReport report_;
  DumpGroups dumps_;  // of report_.dumps
};

}  // namespace

const char* hang_name(HangKind kind) {
  switch (kind) {
    case HangKind::kMismatch:
      return "mismatch";
    case HangKind::kNotCalled:
      return "not-called";
    case HangKind::kNotPaired:
      return "not-paired";
    case HangKind::kNoDump:
      return "no-dump";
    case HangKind::kNotEnded:
      return "not-ended";
  }
  return "";
}

Result<HangReport> find_hang(std::vector<DumpFile> files) {
  HangReport report;
  report.dumps = choose_dumps(std::move(files), report.remarks);
  if (report.dumps.empty())
    return Error{Errc::kInvalidArgument, report.remarks.empty()
                                             ? "expected flight-recorder dumps, found none"
                                             : report.remarks.front()};
  return HangFinder(std::move(report)).run();
}

}  // namespace lanescope::ranks
