// When the loop waited for a batch.
#pragma once
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// The stretches of waiting_for_batches() (cpu_waits.h): disjoint, in order of time.
std::vector<analysis::Window> batch_wait_windows(const Facts& facts);

// From the end of an epoch's last batch to the first of the next, which lies in a steady step: the DataLoader started
// its workers again. Empty: once or not at all, which is no part of a usual step; once in the only steady step counts
// where that step takes several batches. Disjoint, in order of time.
const std::vector<analysis::Window>& repeated_worker_restarts(const Facts& facts);

// A torch DataLoader gave batches while the trace was recorded, in any step.
bool has_loader(const Facts& facts);

}  // namespace lanescope::explain::rules
