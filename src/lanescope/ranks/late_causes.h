// What late ranks do longer than the others.
#pragma once
#include <cstddef>
#include <set>

#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {

// Fills causes, same_kernels and host_part of the verdict, which has its late_ns. `late`: places in
// Job::compared, fewer than all. docs/definitions/ranks.md#verdict. O(ranks steps).
void find_causes(const Job& job, const std::set<std::size_t>& late, JobVerdict& verdict);

}  // namespace lanescope::ranks
