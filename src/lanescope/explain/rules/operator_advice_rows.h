// All rows of operator_advice.h, sorted by operator. The rows of one operator lie in one file, in the
// order in which they are asked: operator_rows_matrices.h, _lookups.h, _layers.h.
#pragma once
#include <span>

#include "lanescope/explain/rules/operator_advice.h"

namespace lanescope::explain::rules {

std::span<const OperatorAdvice> operator_advice_rows();

}  // namespace lanescope::explain::rules
