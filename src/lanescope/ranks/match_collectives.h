// Which calls of different ranks are one collective.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lanescope/ranks/call_table.h"
#include "lanescope/ranks/communicator.h"
#include "lanescope/ranks/rank_summary.h"

namespace lanescope::ranks {

// One rank's part of a collective. Nanoseconds since RankSummary::origin_ns of that rank.
struct CollectiveMember {
  std::uint32_t rank = 0, call = 0;  // place among the job's ranks, and in RankSummary::collectives
  std::uint32_t kind = 0;            // index into Matching::kinds
  std::int32_t step = -1;            // index into RankSummary::steps; -1: none
  std::int64_t start_ns = 0, end_ns = 0, exposed_ns = 0;
};

struct MatchedCollective {
  std::uint32_t group = 0;                // index into Matching::groups
  std::int64_t sequence = -1;             // of the group, where it is recorded
  std::int64_t step = -1;                 // number of the step; -1: steps have no numbers
  bool one_way = false;                   // a send and its recv: only the receiver waits
  bool blocking = false;                  // nobody leaves before the last one has arrived
  std::vector<CollectiveMember> members;  // by rank, two or more; of a pair the sender first
};

struct MatchedGroup {
  std::string name, description;
  std::int64_t size = 0;             // 0: unknown
  std::vector<std::uint32_t> ranks;  // indices of the summaries that call it
  std::uint64_t matched = 0;         // calls, not collectives
  std::uint64_t unmatched = 0;
  bool by_sequence = false;  // by recorded sequence numbers
  std::uint64_t pairs = 0;   // sends with their receives
};

// Ranks that disagree about what they call together: the usual cause of a job that hangs.
struct Mismatch {
  std::uint32_t group = 0, rank = 0;  // the rank that differs from most others
  std::int64_t step = -1;
  std::uint64_t place = 0;      // in the step, from 0; with sequence numbers that number
  std::string found, expected;  // "allreduce of 1024 Float"; found is empty: none called
};

struct Matching {
  std::vector<MatchedGroup> groups;   // by name, then ranks; counts on worker 0
  std::vector<CollectiveKind> kinds;  // of the whole job
  // Those that this worker owns, by group, then in order of the calls. A single worker has all.
  std::vector<MatchedCollective> collectives;
  // The rest is on worker 0 only.
  std::vector<Mismatch> mismatches;  // at most kMostMismatches
  std::uint64_t mismatch_count = 0;
  std::uint64_t waited_count = 0;      // collectives in which one rank can wait for another
  std::vector<std::uint64_t> matched;  // one per rank: calls with a partner
};
inline constexpr std::size_t kMostMismatches = 16;

// By process group and sequence number where every call of the group has one; else the calls of
// each step are aligned by (collective, elements, dtype) in launch order.
// docs/definitions/ranks.md#matching. Each call goes to the worker that owns its key: (group,
// sequence number), (group, step), or the group of a send. Every worker calls it. Takes the calls
// out of `own`. O(calls) where ranks agree; else at most kMostAlignCells cells a rank and step.
Matching match_collectives(std::span<OwnRank> own, std::size_t ranks, Communicator& workers);

// "allreduce of 16,781,312 BFloat16".
std::string kind_text(const CollectiveKind& kind);

}  // namespace lanescope::ranks
