// Detects that the late ranks are exactly the ranks of one host. Then the machine is more likely slow than the program.
#pragma once
#include <string>

#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {

// A sentence that names the host, if the verdict is a straggler and its two or more ranks are exactly the compared ranks of
// one host among several. Else empty. Also empty if these ranks compute longer in other kernels, or if a rank does not name its
// host. Safe to print. O(ranks).
std::string late_host_text(const Job& job, const JobVerdict& verdict);

}  // namespace lanescope::ranks
