// All ranks of a group call its collectives in one order, and PyTorch numbers them. So a job that hangs
// has a first number at which ranks differ: in what they call, or in whether they have called it. A rank
// that has not called it may wait elsewhere itself, so each rank's own open call is named, too; a rank
// without one has stopped in its own code. The recorder keeps the last calls only: numbers that one rank
// has overwritten are not compared.
#include "lanescope/ranks/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "lanescope/ranks/call_table.h"
#include "lanescope/ranks/roster.h"

namespace lanescope::ranks {
namespace {

constexpr std::int64_t kLeastRecordedWaitNs = 1'000'000'000;

using NamedGroup = std::pair<std::string, std::string>;  // name, description

// Sizes that may differ from rank to rank are left out.
std::string sign_of(const FlightCall& call) {
  CollectiveKind kind;
  kind.name = call.name;
  kind.has_metadata = true;
  const CallShape shape = shape_of(kind);
  if (shape != CallShape::kAll)
    return shape == CallShape::kUnknown ? call.name : call.name + "/" + call.dtype;
  const bool gathers = call.name.find("gather") != std::string::npos;
  const bool scatters = call.name.find("scatter") != std::string::npos;
  return fmt::format("{}/{}/{}/{}", call.name, call.dtype, gathers ? -1 : call.in_elements,
                     scatters ? -1 : call.out_elements);
}

// "send 0->1" and "recv 1<-0": ranks within the group.
struct Pair {
  bool is_send = false;
  std::int64_t own = -1, other = -1;
};
std::optional<Pair> pair_of(std::string_view name) {
  Pair pair;
  pair.is_send = name.starts_with("send ");
  if (!pair.is_send && !name.starts_with("recv ")) return std::nullopt;
  const char* const end = name.data() + name.size();
  const auto own = std::from_chars(name.data() + 5, end, pair.own);
  if (own.ec != std::errc() || end - own.ptr < 3) return std::nullopt;
  const auto other = std::from_chars(own.ptr + 2, end, pair.other);
  if (other.ec != std::errc() || other.ptr != end) return std::nullopt;
  return pair;
}

std::string rank_word(const std::vector<std::int64_t>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", ranks_text(ranks));
}

class HangFinder {
 public:
  explicit HangFinder(HangReport report) : report_(std::move(report)) {}

  HangReport run() {
    for (std::size_t i = 0; i < report_.dumps.size(); ++i) add_dump(i);
    for (auto& [name, group] : groups_) {
      std::set<std::int64_t> ranks(group.ranks.begin(), group.ranks.end());
      for (const auto& [rank, member] : group.members) ranks.insert(rank);
      for (const std::int64_t rank : ranks)
        if (dump_of_rank_.contains(rank)) group.with_dump.push_back(rank);
      check_group(name, group);
    }
    find_missing_dumps();
    std::stable_sort(report_.findings.begin(), report_.findings.end(),
                     [](const HangFinding& a, const HangFinding& b) { return a.kind < b.kind; });
    report_.groups = groups_.size();
    return std::move(report_);
  }

 private:
  struct Member {
    std::size_t dump = 0;
    std::map<std::int64_t, std::vector<std::size_t>> calls;  // by sequence number
    std::vector<std::size_t> pairs;                          // sends and receives, in order
  };
  struct Group {
    std::vector<std::int64_t> ranks;         // of the job, in the group's order; empty: unknown
    std::map<std::int64_t, Member> members;  // by rank: those with a call of it in their dump
    std::vector<std::int64_t> with_dump;     // its ranks with a dump, rising
  };

  const FlightCall& call(const Member& member, std::size_t at) const {
    return report_.dumps[member.dump].calls[at];
  }

  void add_dump(std::size_t index) {
    const FlightDump& dump = report_.dumps[index];
    dump_of_rank_.emplace(*dump.rank, index);
    HangRank rank{*dump.rank, dump.file, dump.calls.size(), {}, {}};
    for (std::size_t i = 0; i < dump.calls.size(); ++i) {
      const FlightCall& each = dump.calls[i];
      const bool ended = each.state == CallState::kCompleted;
      if (!ended && !rank.open) rank.open = i;
      if (ended) rank.ended = i;
      const FlightGroup& group = dump.groups[each.group];
      Group& into = groups_[{group.name, group.description}];
      if (into.ranks.empty()) into.ranks = group.ranks;
      Member& member = into.members[*dump.rank];
      member.dump = index;
      if (each.point_to_point)
        member.pairs.push_back(i);
      else if (each.sequence >= 0)
        member.calls[each.sequence].push_back(i);
    }
    report_.calls += dump.calls.size();
    report_.ranks.push_back(std::move(rank));
  }

  static std::string group_text(const NamedGroup& group) {
    if (group.second.empty() || group.second == "undefined") return group.first;
    return fmt::format("{} ({})", group.first, group.second);
  }

  void add(HangKind kind, std::vector<std::int64_t> ranks, const NamedGroup& group,
           std::int64_t sequence, std::string text) {
    report_.findings.push_back(
        {kind, std::move(ranks), group_text(group), sequence, std::move(text)});
  }

  void check_group(const NamedGroup& name, const Group& group) {
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
  bool check_call(const NamedGroup& name, const Group& group, std::int64_t sequence) {
    std::map<std::string, std::vector<std::int64_t>> by_sign;
    std::vector<std::int64_t> without, waiting, all;
    for (const std::int64_t rank : group.with_dump) {
      const auto member = group.members.find(rank);
      const std::vector<std::size_t>* calls = calls_at(group, rank, sequence);
      if (calls == nullptr) {
        // Not in the dump's window although later ones are: unknown.
        const bool later = member != group.members.end() && !member->second.calls.empty() &&
                           member->second.calls.rbegin()->first > sequence;
        const bool lost =
            member == group.members.end() && !report_.dumps[dump_of_rank_.at(rank)].is_whole;
        if (!later && !lost) without.push_back(rank);
        continue;
      }
      std::string sign;
      bool is_open = false;
      for (const std::size_t at : *calls) {
        sign += sign_of(call(member->second, at)) + ";";
        is_open |= call(member->second, at).state != CallState::kCompleted;
      }
      by_sign[sign].push_back(rank);
      all.push_back(rank);
      if (is_open) waiting.push_back(rank);
    }
    if (by_sign.size() > 1) return add_mismatch(name, group, sequence, by_sign);
    if (waiting.empty() || by_sign.empty()) return false;
    if (report_.dumps[dump_of_rank_.at(waiting.front())].is_recording)
      return !without.empty() && add_left_behind(name, group, sequence, without, waiting);
    if (!without.empty()) return add_not_called(name, group, sequence, without, waiting);
    return add_not_ended(name, group, sequence, waiting, all);
  }

  // Null: the rank's dump has none with that number.
  static const std::vector<std::size_t>* calls_at(const Group& group, std::int64_t rank,
                                                  std::int64_t sequence) {
    const auto member = group.members.find(rank);
    if (member == group.members.end()) return nullptr;
    const auto calls = member->second.calls.find(sequence);
    return calls == member->second.calls.end() ? nullptr : &calls->second;
  }

  const FlightCall& call_of(const Group& group, std::int64_t rank, std::int64_t sequence) const {
    const Member& member = group.members.at(rank);
    return call(member, member.calls.at(sequence).front());
  }

  static std::string from_text(const FlightCall& call) {
    return call.place.empty() ? "" : ", called in " + call.place;
  }

  bool add_mismatch(const NamedGroup& name, const Group& group, std::int64_t sequence,
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
      const FlightCall& found = call_of(group, at->second.front(), sequence);
      text +=
          fmt::format("{} {} {}{}; ", rank_word(at->second),
                      at->second.size() == 1 ? "calls" : "call", found.text(), from_text(found));
      others.insert(others.end(), at->second.begin(), at->second.end());
    }
    const FlightCall& usual = call_of(group, agreed->second.front(), sequence);
    text +=
        fmt::format("{} {} {}{}", rank_word(agreed->second),
                    agreed->second.size() == 1 ? "calls" : "call", usual.text(), from_text(usual));
    std::sort(others.begin(), others.end());
    add(HangKind::kMismatch, std::move(others), name, sequence, std::move(text));
    return true;
  }

  // What a rank that is missed does instead.
  std::string instead_text(std::int64_t rank) const {
    const std::size_t at = dump_of_rank_.at(rank);
    const HangRank& state = report_.ranks[at];
    const FlightDump& dump = report_.dumps[at];
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

  bool add_not_called(const NamedGroup& name, const Group& group, std::int64_t sequence,
                      const std::vector<std::int64_t>& without,
                      const std::vector<std::int64_t>& waiting) {
    const FlightCall& open = call_of(group, waiting.front(), sequence);
    std::string text = fmt::format(
        "collective {} of group {}: {} {} not called {}, in which {} {}{}{}. {}", sequence,
        group_text(name), rank_word(without), without.size() == 1 ? "has" : "have", open.text(),
        rank_word(waiting), waiting.size() == 1 ? "waits" : "wait", from_text(open),
        open.timed_out ? " (timed out)" : "", instead_text(without.front()));
    if (without.size() > 1) text += "; the table below has the other ranks";
    add(HangKind::kNotCalled, without, name, sequence, std::move(text));
    return true;
  }

  // How long before the end of a recording one of its calls began.
  std::int64_t since_ns(std::int64_t rank, const FlightCall& call) const {
    return report_.dumps[dump_of_rank_.at(rank)].end_ns - call.created_ns;
  }

  // Recordings: a rank's last call may have ended. A rank that calls nothing more for a second waits; less
  // is a CPU that ran ahead when the job was killed.
  bool add_left_behind(const NamedGroup& name, const Group& group, std::int64_t sequence,
                       const std::vector<std::int64_t>& without,
                       const std::vector<std::int64_t>& waiting) {
    const FlightCall& open = call_of(group, waiting.front(), sequence);
    const std::int64_t waited = since_ns(waiting.front(), open);
    if (waited < kLeastRecordedWaitNs) return false;
    std::string text = fmt::format(
        "collective {} of group {}: {} {} not called {}, the last call of {}, {:.1f} s before the "
        "recording ends. ",
        sequence, group_text(name), rank_word(without), without.size() == 1 ? "has" : "have",
        open.text(), rank_word(waiting), static_cast<double>(waited) / 1e9);
    const HangRank& state = report_.ranks[dump_of_rank_.at(without.front())];
    if (!state.open) {
      text += fmt::format("Rank {} has called none", state.rank);
    } else {
      const FlightCall& last = report_.dumps[dump_of_rank_.at(state.rank)].calls[*state.open];
      text += fmt::format("The last call of rank {} is collective {} ({}), {:.1f} s before its end",
                          state.rank, last.sequence, last.text(),
                          static_cast<double>(since_ns(state.rank, last)) / 1e9);
    }
    add(HangKind::kNotCalled, without, name, sequence, std::move(text));
    return true;
  }

  bool add_not_ended(const NamedGroup& name, const Group& group, std::int64_t sequence,
                     const std::vector<std::int64_t>& waiting,
                     const std::vector<std::int64_t>& all) {
    const FlightCall& open = call_of(group, waiting.front(), sequence);
    add(HangKind::kNotEnded, waiting, name, sequence,
        fmt::format("collective {} of group {}: {} {} called {}, and it has not ended on {}{}",
                    sequence, group_text(name), rank_word(all), all.size() == 1 ? "has" : "have",
                    open.text(), rank_word(waiting),
                    open.timed_out ? " (timed out): look at the network and at the GPUs"
                                   : ". A job that runs looks like this, too"));
    return true;
  }

  // The n-th receive belongs to the n-th send; only whole dumps can be counted.
  void check_pairs(const NamedGroup& name, const Group& group) {
    using Key = std::tuple<bool, std::int64_t, std::int64_t>;  // is a send, from, to: in the group
    std::map<Key, std::vector<std::pair<std::int64_t, std::size_t>>> calls;
    std::map<std::int64_t, std::int64_t> job_rank;
    for (std::size_t i = 0; i < group.ranks.size(); ++i)
      job_rank[static_cast<std::int64_t>(i)] = group.ranks[i];
    for (const auto& [rank, member] : group.members) {
      if (!report_.dumps[member.dump].is_whole) return;
      for (const std::size_t at : member.pairs)
        if (const auto pair = pair_of(call(member, at).name))
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
      const FlightCall& open = call(group.members.at(rank), at);
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
    for (const auto& [name, group] : groups_)
      for (const std::int64_t rank : group.ranks)
        if (!dump_of_rank_.contains(rank)) missing.insert(rank);
    if (missing.empty()) return;
    std::vector<std::int64_t> ranks(missing.begin(), missing.end());
    std::string text = fmt::format(
        "there is no dump of {}: what {} did is unknown. A process that crashed or was killed "
        "writes "
        "none",
        rank_word(ranks), ranks.size() == 1 ? "it" : "they");
    report_.findings.push_back({HangKind::kNoDump, std::move(ranks), "", -1, std::move(text)});
  }

  HangReport report_;
  std::map<std::int64_t, std::size_t> dump_of_rank_;
  std::map<NamedGroup, Group> groups_;
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
  std::map<std::int64_t, FlightDump> by_rank;
  for (DumpFile& file : files) {
    if (!file.dump) {
      report.remarks.push_back(
          fmt::format("{} is left out: {}", file.file, file.dump.error().message));
      continue;
    }
    FlightDump dump = *std::move(file.dump);
    if (!dump.rank) {
      report.remarks.push_back(fmt::format(
          "{} is left out: its name does not say its rank, as nccl_trace_rank_3 does", file.file));
      continue;
    }
    if (dump.skipped > 0)
      report.remarks.push_back(
          fmt::format("{}: {} entries without a name are left out", file.file, dump.skipped));
    const auto [at, is_new] = by_rank.try_emplace(*dump.rank, dump);
    if (is_new) continue;
    // The later dump of a rank knows more; a pickle and JSON of one moment are the same.
    const bool more = dump.calls.size() > at->second.calls.size();
    report.remarks.push_back(fmt::format("{} is left out: {} is of rank {} as well",
                                         more ? at->second.file : dump.file,
                                         more ? dump.file : at->second.file, *dump.rank));
    if (more) at->second = std::move(dump);
  }
  if (by_rank.empty())
    return Error{Errc::kInvalidArgument, report.remarks.empty()
                                             ? "expected flight-recorder dumps, found none"
                                             : report.remarks.front()};
  for (auto& [rank, dump] : by_rank) report.dumps.push_back(std::move(dump));
  return HangFinder(std::move(report)).run();
}

}  // namespace lanescope::ranks
