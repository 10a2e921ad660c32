// The least bytes that operators which gather, scatter or resample must move. An operator that is
// far slower than these bytes need has scattered reads, or additions that wait for each other.
#pragma once
#include <optional>
#include <string_view>

#include "lanescope/analysis/operator_work.h"
#include "lanescope/analysis/tensor_arguments.h"

namespace lanescope::analysis {

// `op` without "aten::".
bool has_indexed_work(std::string_view op);
// Nothing: inputs are missing or do not fit the operator.
std::optional<OperatorWork> compute_indexed_work(std::string_view op,
                                                 const TensorArguments& inputs);

}  // namespace lanescope::analysis
