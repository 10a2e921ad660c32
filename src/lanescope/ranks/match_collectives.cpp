#include "lanescope/ranks/match_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "lanescope/base/sort_rows.h"
#include "lanescope/ranks/align_calls.h"
#include "lanescope/ranks/message.h"

namespace lanescope::ranks {
namespace {

// How a call finds its partners.
enum class KeyKind : std::uint32_t { kPair, kSequence, kStep };

// One call on its way to the worker that owns its key.
struct SentCall {
  std::uint32_t group = 0;
  KeyKind by{};
  std::int64_t number = 0;  // sequence number or number of the step; 0 of a pair
  std::int64_t sequence = -1, step_number = -1;
  CollectiveMember member;
  auto key() const { return std::tuple(group, by, number); }
  auto order() const { return std::tuple(group, by, number, member.rank, member.call); }
};

std::uint64_t mixed(const SentCall& call) {
  std::uint64_t hash = 1469598103934665603U;
  for (const std::uint64_t part : {std::uint64_t{call.group}, static_cast<std::uint64_t>(call.by),
                                   static_cast<std::uint64_t>(call.number)}) {
    hash ^= part;
    hash *= 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29;
  }
  return hash;
}

// A mismatch on its way to worker 0; what is found and expected are kinds.
struct SentMismatch {
  std::uint32_t group = 0, rank = 0, found = 0, expected = 0;
  std::int64_t number = 0, step = -1;
  std::uint64_t place = 0;
};

struct RankCallsOfKey {
  std::uint32_t rank = 0;
  std::span<const SentCall> calls;
};

class Matcher {
 public:
  Matcher(std::span<OwnRank> own, std::size_t ranks, Communicator& workers)
      : own_(own), workers_(workers), matched_(ranks) {}

  Matching run() {
    table_ = make_call_table(own_, workers_);
    std::vector<SentCall> calls = exchange_rows(workers_, sorted_by_owner());
    sort_rows(calls.begin(), calls.end(),
              [](const SentCall& a, const SentCall& b) { return a.order() < b.order(); });
    group_matched_.assign(table_.groups.size(), 0);
    group_pairs_.assign(table_.groups.size(), 0);
    for (std::size_t first = 0; first < calls.size();) {
      std::size_t end = first + 1;
      while (end < calls.size() && calls[end].key() == calls[first].key()) ++end;
      match_key(std::span(calls).subspan(first, end - first));
      first = end;
    }
    return finish();
  }

 private:
  std::vector<std::vector<SentCall>> sorted_by_owner() {
    std::vector<std::vector<SentCall>> to(workers_.workers());
    for (std::size_t i = 0; i < own_.size(); ++i) {
      RankSummary& summary = own_[i].summary;
      for (std::uint32_t call = 0; call < summary.collectives.size(); ++call)
        if (const auto sent = sent_call(i, call)) to[mixed(*sent) % to.size()].push_back(*sent);
      std::vector<CollectiveRecord>().swap(summary.collectives);
    }
    return to;
  }

  // Nothing: it cannot have a partner.
  std::optional<SentCall> sent_call(std::size_t own, std::uint32_t call) const {
    const RankSummary& summary = own_[own].summary;
    const CollectiveRecord& record = summary.collectives[call];
    const CollectiveKind& kind = summary.kinds[record.kind];
    SentCall sent;
    sent.group = table_.own[own].groups[kind.group];
    sent.sequence = record.sequence;
    if (record.step >= 0)
      sent.step_number = summary.steps[static_cast<std::size_t>(record.step)].number;
    sent.member = {own_[own].index,
                   call,
                   table_.own[own].kinds[record.kind],
                   record.step,
                   record.start_ns,
                   record.end_ns,
                   record.exposed_ns};
    const JobGroup& group = table_.groups[sent.group];
    const CallShape shape = shape_of(kind);
    if (shape == CallShape::kSend || shape == CallShape::kReceive) {
      // In a larger group the trace does not say who the other one is.
      if (group.ranks.size() != 2) return std::nullopt;
      sent.by = KeyKind::kPair;
      return sent;
    }
    if (group.collective_ranks < 2) return std::nullopt;
    sent.by = group.has_sequences ? KeyKind::kSequence : KeyKind::kStep;
    sent.number = group.has_sequences ? sent.sequence : sent.step_number;
    // Launched outside of numbered steps while others are inside: where they belong is unknown.
    if (sent.by == KeyKind::kStep && sent.number < 0 && group.has_steps) return std::nullopt;
    return sent;
  }

  void match_key(std::span<const SentCall> calls) {
    switch (calls.front().by) {
      case KeyKind::kPair:
        return match_pairs(calls);
      case KeyKind::kSequence:
        return match_sequence(calls);
      case KeyKind::kStep:
        return match_step(calls);
    }
  }

  CallShape shape(const SentCall& call) const { return shape_of(table_.kinds[call.member.kind]); }
  std::uint32_t sign(const SentCall& call) const { return table_.signs[call.member.kind]; }

  // Sends and receives of a group of two belong to each other in order.
  void match_pairs(std::span<const SentCall> calls) {
    std::vector<const SentCall*> sends[2], receives[2];
    const std::uint32_t first = calls.front().member.rank;
    for (const SentCall& call : calls)
      (shape(call) == CallShape::kSend ? sends : receives)[call.member.rank == first ? 0 : 1]
          .push_back(&call);
    for (const std::size_t from : {std::size_t{0}, std::size_t{1}}) {
      const auto &given = sends[from], &taken = receives[1 - from];
      if (given.size() != taken.size()) continue;  // some are missing: which?
      for (std::size_t i = 0; i < given.size(); ++i)
        add(*given[i], {given[i]->member, taken[i]->member}, true);
    }
  }

  void match_sequence(std::span<const SentCall> calls) {
    std::map<std::uint32_t, std::size_t> votes;
    for (const SentCall& call : calls) ++votes[sign(call)];
    const std::uint32_t agreed =
        std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->first;
    const SentCall& example = *std::find_if(
        calls.begin(), calls.end(), [&](const SentCall& call) { return sign(call) == agreed; });
    std::vector<CollectiveMember> same;
    for (const SentCall& call : calls)
      if (sign(call) == agreed)
        same.push_back(call.member);
      else
        mismatch(call, call.step_number, static_cast<std::uint64_t>(call.number),
                 example.member.kind);
    add(example, std::move(same), false);
  }

  // All ranks are aligned with the sequence that most of them have.
  void match_step(std::span<const SentCall> calls) {
    std::vector<RankCallsOfKey> members;
    for (std::size_t first = 0; first < calls.size();) {
      std::size_t end = first + 1;
      while (end < calls.size() && calls[end].member.rank == calls[first].member.rank) ++end;
      members.push_back({calls[first].member.rank, calls.subspan(first, end - first)});
      first = end;
    }
    if (members.size() < 2) return;
    std::map<std::vector<std::uint32_t>, std::size_t> sequences;
    for (const RankCallsOfKey& member : members) ++sequences[signs(member)];
    const std::vector<std::uint32_t>& agreed =
        std::max_element(sequences.begin(), sequences.end(), [](const auto& a, const auto& b) {
          return std::pair(a.second, a.first.size()) < std::pair(b.second, b.first.size());
        })->first;
    const auto example = std::find_if(members.begin(), members.end(),
                                      [&](const auto& member) { return signs(member) == agreed; });
    std::vector<std::vector<CollectiveMember>> places(agreed.size());
    for (const RankCallsOfKey& member : members) {
      const Alignment alignment = align_calls(agreed, signs(member));
      for (const auto& [place, at] : alignment.pairs)
        places[place].push_back(member.calls[at].member);
      for (const auto& [place, at] : alignment.replaced)
        mismatch(member.calls[at], calls.front().number, place, example->calls[place].member.kind);
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      // The first member's own sequence number, where it has one.
      if (places[i].size() < 2) continue;
      const std::uint32_t rank = places[i].front().rank, call = places[i].front().call;
      const auto source = std::lower_bound(calls.begin(), calls.end(), std::pair(rank, call),
                                           [](const SentCall& a, const auto& b) {
                                             return std::pair(a.member.rank, a.member.call) < b;
                                           });
      add(*source, std::move(places[i]), false);
    }
  }

  std::vector<std::uint32_t> signs(const RankCallsOfKey& member) const {
    std::vector<std::uint32_t> out;
    for (const SentCall& call : member.calls) out.push_back(sign(call));
    return out;
  }

  void mismatch(const SentCall& call, std::int64_t step, std::uint64_t place,
                std::uint32_t expected) {
    ++mismatch_count_;
    if (mismatches_.size() < kMostMismatches)
      mismatches_.push_back(
          {call.group, call.member.rank, call.member.kind, expected, call.number, step, place});
  }

  void add(const SentCall& first, std::vector<CollectiveMember> members, bool one_way) {
    if (members.size() < 2) return;
    group_matched_[first.group] += members.size();
    group_pairs_[first.group] += one_way ? 1 : 0;
    for (const CollectiveMember& member : members) ++matched_[member.rank];
    MatchedCollective matched;
    matched.group = first.group;
    matched.sequence = first.sequence;
    matched.step = first.step_number;
    matched.one_way = one_way;
    const CallShape what = shape(first);
    matched.blocking = !one_way && (what == CallShape::kAll || what == CallShape::kUneven);
    waited_count_ += matched.blocking || matched.one_way ? 1 : 0;
    matched.members = std::move(members);
    out_.collectives.push_back(std::move(matched));
  }

  Matching finish() {
    MessageWriter own;
    own.put(mismatch_count_).put(waited_count_).put_rows(mismatches_);
    own.put_rows(group_matched_).put_rows(group_pairs_).put_rows(matched_);
    std::vector<SentMismatch> mismatches;
    std::vector<std::uint64_t> matched_of_group(table_.groups.size());
    std::vector<std::uint64_t> pairs_of_group(table_.groups.size());
    out_.matched.assign(matched_.size(), 0);
    for (const std::string& message : workers_.gather(own.finish())) {
      MessageReader in(message);
      out_.mismatch_count += in.get<std::uint64_t>();
      out_.waited_count += in.get<std::uint64_t>();
      for (const SentMismatch& each : in.get_rows<SentMismatch>()) mismatches.push_back(each);
      add_rows(in.get_rows<std::uint64_t>(), matched_of_group);
      add_rows(in.get_rows<std::uint64_t>(), pairs_of_group);
      add_rows(in.get_rows<std::uint64_t>(), out_.matched);
    }
    sort_rows(mismatches.begin(), mismatches.end(), [](const auto& a, const auto& b) {
      return std::pair(a.group, a.number) < std::pair(b.group, b.number);
    });
    if (mismatches.size() > kMostMismatches) mismatches.resize(kMostMismatches);
    for (const SentMismatch& each : mismatches)
      out_.mismatches.push_back({each.group, each.rank, each.step, each.place,
                                 kind_text(table_.kinds[each.found]),
                                 kind_text(table_.kinds[each.expected])});
    for (std::size_t i = 0; i < table_.groups.size(); ++i) {
      JobGroup& group = table_.groups[i];
      const bool by_sequence = group.collective_ranks > 1 && group.has_sequences;
      out_.groups.push_back({std::move(group.name), std::move(group.description), group.size,
                             std::move(group.ranks), matched_of_group[i],
                             group.calls - matched_of_group[i], by_sequence, pairs_of_group[i]});
    }
    out_.kinds = std::move(table_.kinds);
    return std::move(out_);
  }

  static void add_rows(const std::vector<std::uint64_t>& from, std::vector<std::uint64_t>& into) {
    for (std::size_t i = 0; i < from.size() && i < into.size(); ++i) into[i] += from[i];
  }

  std::span<OwnRank> own_;
  Communicator& workers_;
  CallTable table_;
  std::vector<std::uint64_t> matched_;        // one per rank
  std::vector<std::uint64_t> group_matched_;  // one per group
  std::vector<std::uint64_t> group_pairs_;    // one per group
  std::vector<SentMismatch> mismatches_;
  std::uint64_t mismatch_count_ = 0, waited_count_ = 0;
  Matching out_;
};

}  // namespace

std::string kind_text(const CollectiveKind& kind) {
  const std::int64_t most = std::max(kind.in_elements, kind.out_elements);
  if (most < 0) return kind.name;
  return fmt::format("{} of {} {}", kind.name, most, kind.dtype.empty() ? "elements" : kind.dtype);
}

Matching match_collectives(std::span<OwnRank> own, std::size_t ranks, Communicator& workers) {
  return Matcher(own, ranks, workers).run();
}

}  // namespace lanescope::ranks
