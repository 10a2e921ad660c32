// Ranks of one host have one clock.
#pragma once
#include <string>
#include <vector>

#include "lanescope/ranks/clock_offsets.h"
#include "lanescope/ranks/communicator.h"

namespace lanescope::ranks {

// Where the recordings name the same host, and the offsets of its ranks are equal within their errors: one
// offset for them, with a smaller error. For ranks on CPUs, whose collectives end less exactly, it is enough
// that no collective excludes it. docs/definitions/ranks.md#clock-offset. `hosts`: one name per rank on
// worker 0, empty where unknown; elsewhere it is not used. `on_cpu`: JobLayout::on_cpu. Every worker calls it
// with the clocks of all ranks. O(ranks log ranks).
void share_host_clocks(const std::vector<std::string>& hosts, const std::vector<bool>& on_cpu,
                       Communicator& workers, std::vector<RankClock>& clocks);

}  // namespace lanescope::ranks
