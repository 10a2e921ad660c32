// Rows of operator_advice.h: products, factorisations and transforms.
#pragma once
#include <span>

#include "lanescope/explain/rules/operator_advice.h"

namespace lanescope::explain::rules {

std::span<const OperatorAdvice> matrix_operator_rows();

}  // namespace lanescope::explain::rules
