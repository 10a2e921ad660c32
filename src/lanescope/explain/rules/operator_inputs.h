// The recorded inputs of one call of an operator.
#pragma once
#include "lanescope/analysis/tensor_arguments.h"
#include "lanescope/model/trace.h"

namespace lanescope::explain::rules {

// Parses the texts once a call: keep the result. Without shapes in the trace it has no tensors.
analysis::TensorArguments operator_inputs(const Trace& trace, SliceId op);

}  // namespace lanescope::explain::rules
