// What communication costs by the purpose of its groups: tensor parallelism, data parallelism, experts. One
// purpose has many groups that share no rank, such as the pairs of a job with two tensor-parallel ranks.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lanescope/ranks/match_collectives.h"

namespace lanescope::ranks {

// Times in hostile part files may add up to more than 64 bits can hold: then the sum stays at the largest time.
inline void add_time(std::int64_t& sum, std::int64_t more) {
  if (__builtin_add_overflow(sum, more, &sum)) sum = INT64_MAX;
}

// One rank's matched calls of one group in one step. Rows with equal keys add up.
struct GroupStep {
  std::uint32_t rank = 0, group = 0;  // place among the job's ranks; index into Matching::groups
  std::int32_t step = -1;             // index into RankSummary::steps
  std::uint32_t calls = 0;
  std::int64_t exposed_ns = 0, exposed_wait_ns = 0;
};

// Means over the steps and ranks of the job, ranks without such a group included: nanoseconds per step.
// docs/definitions/ranks.md#communication-by-group.
struct GroupTimes {
  std::string name;  // the description, else the name of one of the groups; untrusted
  bool is_described = false;
  std::uint64_t groups = 0;  // how many groups
  std::int64_t size = 0;     // ranks in each group; 0: unknown
  std::uint64_t calls = 0;   // a step of a rank that takes part
  std::int64_t exposed_ns = 0;
  std::int64_t exposed_wait_ns = 0;  // the part of it that is waiting for late ranks
  std::int64_t transfer_ns() const { return exposed_ns - exposed_wait_ns; }
};

// A name of a file that holds letters, digits and _-.: alone, at most 40 bytes: safe to print.
bool is_plain_name(const std::string& name);

// "mesh_tp (2 groups of 4 ranks)", "group 3 (4 ranks)". Without a name of plain letters "a group". Safe to print.
std::string groups_name(const GroupTimes& groups);

// The purpose of each group of `matching`, from 0: groups of one description belong together. Without one
// ("undefined" is none): groups of one size that share no rank, in order of their names.
std::vector<std::uint32_t> find_purposes(const Matching& matching);

// `rows`: those of compared ranks and of the job's steady steps; `rank_steps`: how many pairs of these there are.
// Most transfer first. O(rows + groups x purposes).
std::vector<GroupTimes> sum_groups(const Matching& matching, std::span<const GroupStep> rows,
                                   std::uint64_t rank_steps);

}  // namespace lanescope::ranks
