// Finds slow networks: groups that are slower than others like them, while all of their ranks are present.
#pragma once
#include <string>

#include "lanescope/ranks/job.h"

namespace lanescope::ranks {

// Sentences that name the ranks, and the host if there is one that all slow groups have and no others. Empty: there
// is no slow group, or there are too few to compare. docs/definitions/ranks.md#notes. Safe to print.
std::string slow_links_text(const Job& job);

}  // namespace lanescope::ranks
