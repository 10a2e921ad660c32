// How far the clocks of the ranks are apart, from collectives that nobody can leave before the last
// rank has arrived.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lanescope/ranks/match_collectives.h"
#include "lanescope/ranks/rank_summary.h"

namespace lanescope::ranks {

// docs/definitions/ranks.md#clock-offset. Nanoseconds.
struct RankClock {
  bool known = false;          // linked to the reference by collectives
  std::int64_t offset_ns = 0;  // this rank's clock minus the reference's
  std::int64_t error_ns = 0;   // the offset is within plus or minus this
  double drift = 0;            // seconds a second that this clock gains; 0: none found
  std::uint64_t samples = 0;   // collectives that the offset is from
  // What collectives prove: the offset lies between these. Valid if samples > 0.
  std::int64_t lowest_ns = 0, highest_ns = 0;
  bool contradicts = false;  // lowest_ns > highest_ns: some collectives are matched wrongly

  // From a time since RankSummary::origin_ns to the reference's time since its own origin.
  std::int64_t aligned(std::int64_t time_ns) const;
  std::int64_t shift_ns = 0, middle_ns = 0;  // what aligned() subtracts at `middle_ns`
};

// The reference is the first rank. One entry a rank. O(calls log calls). Any thread.
std::vector<RankClock> compute_clock_offsets(std::span<const RankSummary> ranks,
                                             const Matching& matching);

}  // namespace lanescope::ranks
