// Why a GPU ran nothing, as a sentence for a reader who does not know the causes' names.
#pragma once
#include "lanescope/analysis/gaps.h"

namespace lanescope::report {

const char* idle_cause_sentence(analysis::IdleCause cause);

}  // namespace lanescope::report
