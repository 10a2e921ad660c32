// Ranks whose devices wait for their CPUs, whoever holds the others up.
#pragma once
#include <string>

#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {

// One or two sentences; empty: there are no such ranks besides those of the verdict, or they compute on CPUs.
// docs/definitions/ranks.md#notes. No text of files.
std::string cpu_bound_text(const Job& job, const JobVerdict& verdict);

}  // namespace lanescope::ranks
