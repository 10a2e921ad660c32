// The rows of operator_advice.h, in order.
#pragma once
#include <span>

#include "lanescope/explain/rules/operator_advice.h"

namespace lanescope::explain::rules {

std::span<const OperatorAdvice> operator_advice_rows();

}  // namespace lanescope::explain::rules
