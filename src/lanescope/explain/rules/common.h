// What rules of all kinds share.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/base/wide.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

// Launched kernels or allocated memory of an accelerator, whatever the trace shows of its work.
bool used_gpu(const Facts& facts);

// "idle {} + busy {}": the terms that are not zero, in order; the first one when all are.
struct Term {
  std::string words;
  std::int64_t time_ns = 0;
};
Sentence sum_of(const std::vector<Term>& terms);

// Fewer than two pieces of GPU work, or less than 20 us of wall: no verdict about a step.
bool is_thin(const Facts& facts);
// A gap beside the first work of the recording that holds more than half of all idle time and ends
// with work that had been launched long before: what ran in it was not recorded. None: no such gap.
const analysis::Gap* find_edge_gap(const Facts& facts);
// Idle waiting for the CPU is more than half of the steady wall; or more than 30 %, and more than
// half of the work found an empty queue.
bool is_host_bound(const Facts& facts);
// Rules that blame launches need them: most work of the main device has its launch call.
bool has_launches(const Facts& facts);
// Adds "CPU meanwhile" evidence: the three largest host shares.
void add_host_evidence(const Facts& facts, const std::vector<HostShare>& shares, Finding& finding);
double share_of(std::int64_t part, std::int64_t whole);

}  // namespace lanescope::explain::rules
