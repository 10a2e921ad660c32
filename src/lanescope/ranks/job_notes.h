// Observations that may be true next to any verdict.
#pragma once
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {

// Adds to verdict.notes; `verdict` has its kind. docs/definitions/ranks.md#notes.
void add_job_notes(const Job& job, JobVerdict& verdict);

}  // namespace lanescope::ranks
