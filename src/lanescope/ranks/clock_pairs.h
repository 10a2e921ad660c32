// Clocks of ranks that no collective links, from sends and receives in both directions.
#pragma once
#include <vector>

#include "lanescope/ranks/clock_offsets.h"

namespace lanescope::ranks {

// Adds the clocks of ranks that exchange data both ways with a rank of a known clock, and of their
// neighbours, and so on. docs/definitions/ranks.md#clock-pairs. Every worker calls it, with equal clocks,
// and gets equal clocks.
void link_clocks_by_pairs(const JobLayout& layout, const Matching& matching, Communicator& workers,
                          std::vector<RankClock>* clocks);

}  // namespace lanescope::ranks
