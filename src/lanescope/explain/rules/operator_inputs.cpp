#include "lanescope/explain/rules/operator_inputs.h"

#include <string_view>

namespace lanescope::explain::rules {

analysis::TensorArguments operator_inputs(const Trace& trace, SliceId op) {
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
