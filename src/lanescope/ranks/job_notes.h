// Observations that may be true next to any verdict.
#pragma once
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {

// Adds to verdict.notes; `verdict` has its kind. docs/definitions/ranks.md#notes.
void add_job_notes(const Job& job, JobVerdict& verdict);

// The late ranks' CPUs are late, in operators and calls: a profiler slows these.
bool is_cpu_in_events(const JobVerdict& verdict);
// A share of a step: by this much a profiler may make CPUs differ.
inline constexpr double kProfilerShare = 0.2;

}  // namespace lanescope::ranks
