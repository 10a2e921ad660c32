// Why a rank that is late in the recording may not be late without it.
#pragma once
#include <string>

#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {

// The reason to doubt that the straggler of this verdict is one, without a full stop. Empty: there is no
// reason, or the verdict is no straggler. docs/definitions/ranks.md#verdict. No text of files.
std::string straggler_doubt(const JobVerdict& verdict);

}  // namespace lanescope::ranks
