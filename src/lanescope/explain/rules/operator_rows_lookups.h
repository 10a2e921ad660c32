// Rows of operator_advice.h: indexing, tables, sorting and counting.
#pragma once
#include <span>

#include "lanescope/explain/rules/operator_advice.h"

namespace lanescope::explain::rules {

std::span<const OperatorAdvice> lookup_operator_rows();

}  // namespace lanescope::explain::rules
