// Which calls of different ranks are one collective.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lanescope/ranks/rank_summary.h"

namespace lanescope::ranks {

// Indices into the summaries and into RankSummary::collectives of that rank.
struct CollectiveMember {
  std::uint32_t rank = 0, call = 0;
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
};

// Ranks that disagree about what they call together: the usual cause of a job that hangs.
struct Mismatch {
  std::uint32_t group = 0, rank = 0;  // the rank that differs from most others
  std::int64_t step = -1;
  std::uint64_t place = 0;      // in the step, from 0; with sequence numbers that number
  std::string found, expected;  // "allreduce of 1024 Float"; found is empty: none called
};

struct Matching {
  std::vector<MatchedGroup> groups;            // by name, then ranks
  std::vector<MatchedCollective> collectives;  // by group, then order of the calls
  std::vector<Mismatch> mismatches;            // at most kMostMismatches
  std::uint64_t mismatch_count = 0;
};
inline constexpr std::size_t kMostMismatches = 16;

// By process group and sequence number where every call of the group has one; else the calls of each
// step are aligned by (collective, elements, dtype) in launch order. docs/definitions/ranks.md#matching.
// Each file is one rank: duplicates are left out before. O(calls) where ranks agree; else at most
// kMostAlignCells cells a rank and step. Any thread.
Matching match_collectives(std::span<const RankSummary> ranks);

// "allreduce of 16,781,312 BFloat16".
std::string kind_text(const CollectiveKind& kind);

}  // namespace lanescope::ranks
