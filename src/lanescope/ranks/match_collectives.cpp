#include "lanescope/ranks/match_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "lanescope/ranks/align_calls.h"

namespace lanescope::ranks {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return out;
}

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

enum class Shape : std::uint8_t {
  kAll,     // every rank gives and takes the same amount, and waits for every other one
  kRooted,  // one rank gives or takes: the others need not wait for each other
  kUneven,  // amounts differ from rank to rank, and all wait for all
  kSend,
  kReceive,
  kUnknown,
};

Shape shape_of(const CollectiveKind& kind) {
  const std::string name = lower(kind.name);
  if (name == "send" || name == "isend") return Shape::kSend;
  if (name == "recv" || name == "irecv") return Shape::kReceive;
  if (holds(name, "sendrecv") && !kind.has_metadata) return Shape::kUnknown;
  for (const char* even : {"allreduce", "all_reduce", "allgather", "all_gather", "reducescatter",
                           "reduce_scatter", "barrier"})
    if (holds(name, even)) return Shape::kAll;
  if (holds(name, "alltoall") || holds(name, "all_to_all")) return Shape::kUneven;
  for (const char* rooted : {"broadcast", "gather", "scatter", "reduce"})
    if (holds(name, rooted)) return Shape::kRooted;
  return Shape::kUnknown;
}

// What calls of one collective have in common. Sizes of an all-to-all, and of a root, may differ.
std::string signature(const CollectiveKind& kind) {
  const Shape shape = shape_of(kind);
  if (shape == Shape::kAll || shape == Shape::kUnknown)
    return fmt::format("{}/{}/{}/{}", kind.name, kind.dtype, kind.in_elements, kind.out_elements);
  return fmt::format("{}/{}", kind.name, kind.dtype);
}

// The same group on several ranks: equal names, and equal lists of ranks where both are known.
using GroupKey = std::tuple<std::string, std::vector<std::int64_t>>;

struct Call {
  std::uint32_t call = 0;
  std::uint32_t sign = 0;  // number of the signature
};
struct RankCallsOfGroup {
  std::uint32_t rank = 0;
  std::vector<Call> calls;
};

class Matcher {
 public:
  explicit Matcher(std::span<const RankSummary> ranks) : ranks_(ranks) {}

  Matching run() {
    collect();
    for (auto& [key, members] : calls_) {
      MatchedGroup group;
      group.name = std::get<0>(key);
      for (const RankCallsOfGroup& member : members) group.ranks.push_back(member.rank);
      describe(members.front(), group);
      group_ = static_cast<std::uint32_t>(out_.groups.size());
      out_.groups.push_back(std::move(group));
      match_group(members);
    }
    return std::move(out_);
  }

 private:
  const CollectiveKind& kind(std::uint32_t rank, std::uint32_t call) const {
    return ranks_[rank].kinds[ranks_[rank].collectives[call].kind];
  }
  const CollectiveRecord& record(std::uint32_t rank, std::uint32_t call) const {
    return ranks_[rank].collectives[call];
  }
  std::int64_t step_number(std::uint32_t rank, std::uint32_t call) const {
    const std::int32_t step = record(rank, call).step;
    return step < 0 ? -1 : ranks_[rank].steps[static_cast<std::size_t>(step)].number;
  }

  void collect() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank)
      for (std::uint32_t call = 0; call < ranks_[rank].collectives.size(); ++call) {
        const CollectiveKind& what = kind(rank, call);
        const ProcessGroup& group = ranks_[rank].groups[what.group];
        auto& members = calls_[{group.name, group.ranks}];
        if (members.empty() || members.back().rank != rank) members.push_back({rank, {}});
        const auto sign = static_cast<std::uint32_t>(
            signs_.try_emplace(signature(what), signs_.size()).first->second);
        members.back().calls.push_back({call, sign});
      }
  }

  void describe(const RankCallsOfGroup& member, MatchedGroup& group) const {
    const RankSummary& rank = ranks_[member.rank];
    const ProcessGroup& source = rank.groups[kind(member.rank, member.calls.front().call).group];
    group.description = source.description;
    group.size = source.size;
  }

  void match_group(std::vector<RankCallsOfGroup>& members) {
    std::size_t total = 0;
    for (const RankCallsOfGroup& member : members) total += member.calls.size();
    const std::uint64_t before = matched_;
    match_pairs(members);
    if (members.size() > 1) {
      if (has_sequences(members)) {
        out_.groups[group_].by_sequence = true;
        match_by_sequence(members);
      } else {
        match_by_order(members);
      }
    }
    out_.groups[group_].matched = matched_ - before;
    out_.groups[group_].unmatched = total - out_.groups[group_].matched;
  }

  // Sends and receives of a group of two belong to each other in order; in larger groups the trace
  // does not say who the other one is. Takes them out of `members`.
  void match_pairs(std::vector<RankCallsOfGroup>& members) {
    std::vector<std::vector<std::uint32_t>> sends(members.size()), receives(members.size());
    for (std::size_t i = 0; i < members.size(); ++i)
      std::erase_if(members[i].calls, [&](const Call& call) {
        const Shape shape = shape_of(kind(members[i].rank, call.call));
        if (shape == Shape::kSend) sends[i].push_back(call.call);
        if (shape == Shape::kReceive) receives[i].push_back(call.call);
        return shape == Shape::kSend || shape == Shape::kReceive;
      });
    if (members.size() == 2)
      for (const std::size_t from : {std::size_t{0}, std::size_t{1}}) {
        const std::size_t to = 1 - from;
        if (sends[from].size() != receives[to].size()) continue;  // some are missing: which?
        for (std::size_t i = 0; i < sends[from].size(); ++i)
          add({{members[from].rank, sends[from][i]}, {members[to].rank, receives[to][i]}}, true);
      }
    std::erase_if(members, [](const RankCallsOfGroup& member) { return member.calls.empty(); });
  }

  bool has_sequences(const std::vector<RankCallsOfGroup>& members) const {
    for (const RankCallsOfGroup& member : members) {
      std::set<std::int64_t> seen;
      for (const Call& call : member.calls)
        if (const std::int64_t number = record(member.rank, call.call).sequence;
            number < 0 || !seen.insert(number).second)
          return false;
    }
    return true;
  }

  void match_by_sequence(const std::vector<RankCallsOfGroup>& members) {
    std::map<std::int64_t, std::vector<std::pair<std::uint32_t, Call>>> by_number;
    for (const RankCallsOfGroup& member : members)
      for (const Call& call : member.calls)
        by_number[record(member.rank, call.call).sequence].push_back({member.rank, call});
    for (const auto& [number, calls] : by_number) {
      std::map<std::uint32_t, std::size_t> votes;
      for (const auto& [rank, call] : calls) ++votes[call.sign];
      const std::uint32_t agreed = most(votes);
      std::vector<CollectiveMember> same;
      for (const auto& [rank, call] : calls) {
        if (call.sign == agreed)
          same.push_back({rank, call.call});
        else
          mismatch(rank, call.call, step_number(rank, call.call),
                   static_cast<std::uint64_t>(number), sign_of(calls, agreed));
      }
      add(std::move(same), false);
    }
  }

  std::uint32_t most(const std::map<std::uint32_t, std::size_t>& votes) const {
    return std::max_element(votes.begin(), votes.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }
  std::string sign_of(const std::vector<std::pair<std::uint32_t, Call>>& calls,
                      std::uint32_t sign) const {
    for (const auto& [rank, call] : calls)
      if (call.sign == sign) return kind_text(kind(rank, call.call));
    return {};
  }

  // Step by step where steps have numbers, so that a rank which recorded other steps still fits.
  void match_by_order(const std::vector<RankCallsOfGroup>& members) {
    std::map<std::int64_t, std::vector<RankCallsOfGroup>> by_step;
    for (const RankCallsOfGroup& member : members)
      for (const Call& call : member.calls) {
        auto& of_step = by_step[step_number(member.rank, call.call)];
        if (of_step.empty() || of_step.back().rank != member.rank)
          of_step.push_back({member.rank, {}});
        of_step.back().calls.push_back(call);
      }
    // Launched outside of numbered steps while others are inside: where they belong is unknown.
    if (by_step.size() > 1) by_step.erase(-1);
    for (const auto& [step, of_step] : by_step) match_step(step, of_step);
  }

  // All ranks are aligned with the sequence that most of them have.
  void match_step(std::int64_t step, const std::vector<RankCallsOfGroup>& members) {
    if (members.size() < 2) return;
    std::map<std::vector<std::uint32_t>, std::size_t> sequences;
    for (const RankCallsOfGroup& member : members) ++sequences[signs(member)];
    const std::vector<std::uint32_t>& agreed =
        std::max_element(sequences.begin(), sequences.end(), [](const auto& a, const auto& b) {
          return std::pair(a.second, a.first.size()) < std::pair(b.second, b.first.size());
        })->first;
    const auto example = std::find_if(members.begin(), members.end(),
                                      [&](const auto& member) { return signs(member) == agreed; });
    std::vector<std::vector<CollectiveMember>> places(agreed.size());
    for (const RankCallsOfGroup& member : members) {
      const std::vector<std::uint32_t> own = signs(member);
      const Alignment alignment = align_calls(agreed, own);
      for (const auto& [place, at] : alignment.pairs)
        places[place].push_back({member.rank, member.calls[at].call});
      for (const auto& [place, at] : alignment.replaced)
        mismatch(member.rank, member.calls[at].call, step, place,
                 kind_text(kind(example->rank, example->calls[place].call)));
    }
    for (auto& place : places) add(std::move(place), false);
  }

  static std::vector<std::uint32_t> signs(const RankCallsOfGroup& member) {
    std::vector<std::uint32_t> out;
    for (const Call& call : member.calls) out.push_back(call.sign);
    return out;
  }

  void mismatch(std::uint32_t rank, std::uint32_t call, std::int64_t step, std::uint64_t place,
                std::string expected) {
    ++out_.mismatch_count;
    if (out_.mismatches.size() < kMostMismatches)
      out_.mismatches.push_back(
          {group_, rank, step, place, kind_text(kind(rank, call)), std::move(expected)});
  }

  void add(std::vector<CollectiveMember> members, bool one_way) {
    if (members.size() < 2) return;
    matched_ += members.size();
    MatchedCollective matched;
    matched.group = group_;
    const CollectiveMember first = members.front();
    matched.sequence = record(first.rank, first.call).sequence;
    matched.step = step_number(first.rank, first.call);
    matched.one_way = one_way;
    const Shape shape = shape_of(kind(first.rank, first.call));
    matched.blocking = !one_way && (shape == Shape::kAll || shape == Shape::kUneven);
    matched.members = std::move(members);
    out_.collectives.push_back(std::move(matched));
  }

  std::span<const RankSummary> ranks_;
  std::map<GroupKey, std::vector<RankCallsOfGroup>> calls_;
  std::map<std::string, std::size_t> signs_;
  std::uint32_t group_ = 0;
  std::uint64_t matched_ = 0;
  Matching out_;
};

}  // namespace

std::string kind_text(const CollectiveKind& kind) {
  const std::int64_t most = std::max(kind.in_elements, kind.out_elements);
  if (most < 0) return kind.name;
  return fmt::format("{} of {} {}", kind.name, most, kind.dtype.empty() ? "elements" : kind.dtype);
}

Matching match_collectives(std::span<const RankSummary> ranks) { return Matcher(ranks).run(); }

}  // namespace lanescope::ranks
