// How far apart the clocks of the ranks are, from collectives that no rank can leave before the
// last one has arrived.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/ranks/communicator.h"
#include "lanescope/ranks/match_collectives.h"

namespace lanescope::ranks {

// docs/definitions/ranks.md#clock-offset. Nanoseconds.
struct RankClock {
  bool known = false;          // linked to the reference by collectives, or by sends and receives
  bool by_pairs = false;       // by sends and receives alone (clock_pairs.h)
  std::int64_t offset_ns = 0;  // this rank's clock minus the reference's
  std::int64_t error_ns = 0;   // the offset is within plus or minus this
  double drift = 0;            // seconds a second that this clock gains; 0: none found
  std::uint64_t samples = 0;   // collectives that the offset is from
  // What collectives prove: the offset lies between these. Valid if samples > 0.
  std::int64_t lowest_ns = 0, highest_ns = 0;
  bool contradicts = false;  // lowest_ns > highest_ns: some collectives are matched wrongly
  std::uint32_t host = 0;    // ranks of one number have one clock, as unsure as it is; 0: not known

  // From a time since RankSummary::origin_ns to the reference's time since its own origin.
  std::int64_t aligned(std::int64_t time_ns) const;
  std::int64_t shift_ns = 0, middle_ns = 0;  // what aligned() subtracts at `middle_ns`
};

// Ranks leave a collective one after the other while the last pieces travel. Measured on rings of
// four GPUs: 5 to 13 % of the time in which all are present (docs/measurements/ranks.md). The
// offset of two ranks is off by the difference between how late the two leave. If each leaves at
// any moment within 12 %, the difference is below 10.8 % in 99 of 100 cases.
inline constexpr std::int64_t kLeavingShare = 9;
inline constexpr std::int64_t kLeastClockErrorNs = 5'000;

// The ranks of a job, and the worker that read the file of each: its home.
struct JobLayout {
  std::vector<std::uint32_t> home;      // one per rank
  std::vector<std::int64_t> origin_ns;  // RankSummary::origin_ns
  std::vector<bool> on_cpu;             // it has no device: CPU threads run its collectives
};

// The reference is the first rank. Returns one entry per rank, on every worker, from the collectives
// that the workers own. Every worker calls it. The owner of a collective sends its ends to the
// homes of its ranks; memory: O(own calls + ranks). Results do not depend on the workers.
std::vector<RankClock> compute_clock_offsets(const JobLayout& layout, const Matching& matching,
                                             Communicator& workers);

}  // namespace lanescope::ranks
