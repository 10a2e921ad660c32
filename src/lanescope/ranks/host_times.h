// What the CPU threads that launch work did: in each step, and while the device waited for them.
#pragma once
#include <vector>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/explain/facts.h"
#include "lanescope/ranks/rank_summary.h"

namespace lanescope::ranks {

// Fills the host_ members of `steps`, which has one entry per step of facts.steps. Leaves them 0 without marked steps
// or without a device. docs/definitions/ranks.md#cpu-times. O(n log n).
void add_host_times(const explain::Facts& facts, std::vector<RankStep>& steps);

// What the threads did while the device waited for them in steady steps, most time first. Without a device:
// what the thread that marks the steps did outside of `running`, the times of operators and collectives.
std::vector<HostPart> find_host_parts(const explain::Facts& facts,
                                      const analysis::IntervalUnion& running);

}  // namespace lanescope::ranks
