// Finds slow networks: groups that are slower than others like them, while all of their ranks are present.
#pragma once
#include <string>

#include "lanescope/ranks/job.h"

namespace lanescope::ranks {

// Sentences that name the ranks, and the host if the slow groups have one in common that the others do not have;
// empty: there is no such group, or too few to compare. docs/definitions/ranks.md#notes. Safe to print.
std::string slow_links_text(const Job& job);

}  // namespace lanescope::ranks
