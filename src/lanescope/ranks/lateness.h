// How late each rank is in each step, computed in two ways: from its arrivals at collectives, and from its own time. Also says
// whether collectives of smaller groups may have made a rank late.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {

// [step of the job][compared rank] in ns, at least 0.
using Lateness = std::vector<std::vector<std::int64_t>>;

// JobStep::late_ns: the larger of both ways.
Lateness arrival_lateness(const Job& job);

// How far the own time of a rank exceeds the median own time of the step.
Lateness own_lateness(const Job& job);

// The mean over the steady steps, for each compared rank.
std::vector<std::int64_t> mean_lateness(const Job& job, const Lateness& lateness);

// True: some groups hold only a part of the compared ranks, and there are other groups, too.
bool has_smaller_groups(const Job& job);

// Why the verdict is doubtful: its ranks arrive late, but their own times do not show it. No full stop at the end. Empty: no
// doubt, because these ranks communicate for less time than they are late.
std::string smaller_groups_doubt(const Job& job, const JobVerdict& verdict);

}  // namespace lanescope::ranks
