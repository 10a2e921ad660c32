// The recorded inputs of one call of an operator.
#pragma once
#include <string_view>

#include "lanescope/analysis/tensor_arguments.h"
#include "lanescope/model/trace.h"

namespace lanescope::explain::rules {

// Parses the texts once a call: keep the result. Without shapes in the trace it has no tensors.
inline analysis::TensorArguments operator_inputs(const Trace& trace, SliceId op) {
  const ArgsView args = trace.slice_args(op);
  const auto text = [&](ArgKey key) {
    const auto found = args.text(key);
    return found ? trace.text(*found) : std::string_view{};
  };
  return analysis::TensorArguments({trace.name(op), text(ArgKey::kInputDims),
                                    text(ArgKey::kInputType), text(ArgKey::kInputStrides),
                                    text(ArgKey::kConcreteInputs)});
}

}  // namespace lanescope::explain::rules
