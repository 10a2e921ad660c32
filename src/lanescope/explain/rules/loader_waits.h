// When the loop waited for a batch.
#pragma once
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// The stretches of waiting_for_batches() (cpu_waits.h): disjoint, in order of time.
std::vector<analysis::Window> batch_wait_windows(const Facts& facts);

// Windows in which the DataLoader started its workers again: from the end of an epoch's last batch to the next epoch's
// first batch, which lies in a steady step. Disjoint, in order of time. Empty: this happened once or never, so it is no
// part of a usual step. Exception: one restart is enough if there is only one steady step and it takes several batches.
const std::vector<analysis::Window>& repeated_worker_restarts(const Facts& facts);

// Waits right after any restart that are at least 10 times as long as the median wait: other workers still start, or make
// their first batch. By thread, in order of time.
const std::vector<analysis::Window>& waits_after_worker_restarts(const Facts& facts);

// True: a torch DataLoader gave batches during the recording, in any step.
bool has_loader(const Facts& facts);

}  // namespace lanescope::explain::rules
