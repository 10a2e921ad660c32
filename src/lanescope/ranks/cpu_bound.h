// Detects a job whose devices wait for CPUs, even if the late CPU is another rank's in each step.
#pragma once
#include <string>

#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {

// Two sentences. Empty: the devices wait too little for CPUs, or only for CPUs of ranks that the verdict names, or a rank has no
// device. docs/definitions/ranks.md#notes. Contains no text of files. O(ranks steps).
std::string cpu_bound_text(const Job& job, const JobVerdict& verdict);

}  // namespace lanescope::ranks
