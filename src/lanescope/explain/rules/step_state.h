// What is true of the steady steps as a whole, for all rules.
#pragma once

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// The program launched kernels or allocated GPU memory, even if the trace shows no GPU work.
bool used_gpu(const Facts& facts);

// Fewer than two pieces of GPU work, or less than 20 us of wall: no verdict about a step.
bool is_thin(const Facts& facts);
// The only marked step is over in less than a millisecond, and outside of the DataLoader it runs less than eight operators: the
// loop ended in it, as after a schedule without repeat=1.
bool is_end_of_loop(const Facts& facts);
// A gap next to the first work of the recording that holds more than half of all idle time and ends
// with work that had been launched long before: what ran in it was not recorded. None: no such gap.
const analysis::Gap* find_edge_gap(const Facts& facts);
// Idle waiting for the CPU, other than for Gloo's collectives, is more than half of the steady wall; or more than 30 %, and more than
// half of the work found an empty queue.
bool is_host_bound(const Facts& facts);
// Rules that blame launches need them: most work of the main device has its launch call.
bool has_launches(const Facts& facts);

}  // namespace lanescope::explain::rules
