// Late ranks that are all the ranks of one host: a slow machine rather than a slow program.
#pragma once
#include <string>

#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {

// A sentence that names the host of a straggler's ranks, if these are two or more and all ranks of that host, and no
// others. Empty: not so, or a compared rank does not name its host. Safe to print. O(ranks).
std::string late_host_text(const Job& job, const JobVerdict& verdict);

}  // namespace lanescope::ranks
