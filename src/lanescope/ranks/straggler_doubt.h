// Why a rank that is late in the recording may not be late without it.
#pragma once
#include <string>

#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {

// The reason not to give this straggler as a verdict, without a full stop; empty: there is none, or the
// verdict is another one. docs/definitions/ranks.md#verdict. No text of files.
std::string straggler_doubt(const JobVerdict& verdict);

}  // namespace lanescope::ranks
