// What changed between two jobs: parts of the step, ranks, collectives.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/ranks/job.h"

namespace lanescope::ranks {

// A step is the sum of these. docs/definitions/ranks.md#comparing-jobs.
enum class JobPart : std::uint8_t { kCompute, kCpuIdle, kOtherIdle, kCopies, kTransfer, kWaits };
inline constexpr std::size_t kJobPartCount = 6;
const char* job_part_name(JobPart part);  // "compute", "cpu_idle", "other_idle", "copies", ...
using JobParts = std::array<std::int64_t, kJobPartCount>;  // ns per step
JobParts parts_of(const RankTimes& times);

struct RankChange {
  std::int64_t rank = 0;
  JobParts a{}, b{};
  std::int64_t a_own_ns = 0, b_own_ns = 0;
  bool own_changed = false, waits_changed = false;  // by more than the comparison's limits
  JobPart most_changed{};                           // of the parts of own time
};

// One kind of collective in groups of one purpose: their description, else their name.
struct CollectiveSide {
  double per_step = 0;           // calls of one group in a step
  std::int64_t together_ns = 0;  // median, from the last arrival to the first departure
  double bus_bandwidth = 0;      // bytes per second; 0: unknown
};
struct CollectiveChange {
  std::string group, kind;  // untrusted text
  std::optional<CollectiveSide> a, b;
  bool count_changed = false, time_changed = false;
  std::int64_t step_ns = 0;  // what the change does to a step's communication
};

// Times are means over the steady steps and the ranks that each job compares.
struct JobComparison {
  std::int64_t a_step_ns = 0, b_step_ns = 0;  // sums of the parts
  JobParts a{}, b{};
  // Waits are at least what the parts say and at most this; transfer is the rest of exposed communication.
  std::int64_t a_most_waits_ns = 0, b_most_waits_ns = 0;
  bool a_waits_known = true, b_waits_known = true;  // of all ranks; if not, waits are in transfer
  // Smaller changes do not count: of parts that need no clock; of transfers and waits, at least both clocks' errors.
  std::int64_t limit_ns = 0, clock_limit_ns = 0;
  std::vector<RankChange> ranks;  // that both jobs compare, by number
  std::vector<std::int64_t> only_a, only_b;
  // Those that changed, by their effect on the step, largest first; at most kMostCollectiveChanges.
  std::vector<CollectiveChange> collectives;
  std::uint64_t collective_changes = 0, collective_kinds = 0;  // all that changed; all there are

  // True: the part changed by more than the limits, and waits and transfers by more than their uncertainty.
  bool changed(JobPart part) const;
};
inline constexpr std::size_t kMostCollectiveChanges = 64;

// kInvalidArgument: a job without ranks to compare, or steps that are not the same unit; the message says which. O(ranks + kinds). Any thread.
Result<JobComparison> compare_jobs(const Job& a, const Job& b);

}  // namespace lanescope::ranks
