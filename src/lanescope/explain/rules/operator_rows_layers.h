// Rows of operator_advice.h: layers, losses, optimizers and pinned memory.
#pragma once
#include <span>

#include "lanescope/explain/rules/operator_advice.h"

namespace lanescope::explain::rules {

std::span<const OperatorAdvice> layer_operator_rows();

}  // namespace lanescope::explain::rules
