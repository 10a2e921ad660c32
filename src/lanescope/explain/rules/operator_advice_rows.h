// All rows of operator_advice.h, sorted by operator. They are data: operators.rows, which operator_rows.cmake makes C++ of.
#pragma once
#include <span>

#include "lanescope/explain/rules/operator_advice.h"

namespace lanescope::explain::rules {

std::span<const OperatorAdvice> operator_advice_rows();

}  // namespace lanescope::explain::rules
