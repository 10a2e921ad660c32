// A job whose devices wait for CPUs, whichever rank's CPU is late in a step.
#pragma once
#include <string>

#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {

// Two sentences; empty: it is not so, or only because of ranks that the verdict names, or the ranks compute on CPUs.
// docs/definitions/ranks.md#notes. No text of files. O(ranks steps).
std::string cpu_bound_text(const Job& job, const JobVerdict& verdict);

}  // namespace lanescope::ranks
