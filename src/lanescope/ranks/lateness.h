// How late ranks are in each step, by when they come to collectives or by their own times alone, and whether collectives in
// smaller groups may be the reason that they come late.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {

// One a step of the job, one a compared rank of it: ns, at least 0.
using Lateness = std::vector<std::vector<std::int64_t>>;

// JobStep::late_ns: the later of both.
Lateness arrival_lateness(const Job& job);

// How far the own time of a rank exceeds the median own time of the step.
Lateness own_lateness(const Job& job);

// Means over the steady steps, one a compared rank.
std::vector<std::int64_t> mean_lateness(const Job& job, const Lateness& lateness);

// Whether compared ranks communicate in groups that leave some of them out, beside others.
bool has_smaller_groups(const Job& job);

// The reason not to give this verdict, if its ranks come late but their own times do not show it; the text has no full stop at
// its end. Empty: they communicate less than they are late, so communication did not make them late.
std::string smaller_groups_doubt(const Job& job, const JobVerdict& verdict);

}  // namespace lanescope::ranks
