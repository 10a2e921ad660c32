// Ranges as torch's collectives open them, without a second process or a GPU: the macros that
// ProcessGroupNCCL uses. test_collectives.py compiles this against the torch at hand.
#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace {
using Sizes = std::vector<std::int64_t>;
std::tuple<std::string, std::string> group(const char* name, const char* description) {
  return {name, description};
}
std::tuple<std::int64_t, bool> call(std::int64_t number, bool point_to_point) {
  return {number, point_to_point};
}
}  // namespace

extern "C" {

void all_reduce(std::int64_t sequence, std::int64_t elements) {
  const at::Tensor tensor = at::ones({elements});
  std::vector<at::Tensor> in{tensor}, out{tensor};
  RECORD_PARAM_COMMS_DATA(call(sequence, false), group("0", "default_pg"), in, out, 1, "allreduce",
                          tensor.numel(), tensor.numel(), tensor.scalar_type(), Sizes(), Sizes(), 0,
                          1, 2);
}

// 40 sizes are more than torch writes.
void all_to_all(std::int64_t sequence) {
  RECORD_PARAM_COMMS(call(sequence, false), group("7", "mesh_ep"), 3, "all_to_all", 100, 120,
                     at::kBFloat16, Sizes({60, 40}), Sizes(40, 3), 0, 4, 64);
}

void send(std::int64_t sequence, int to) {
  RECORD_PARAM_COMMS(call(sequence, true), group("1", "pipeline"), to, "send", 5, 5, at::kHalf,
                     Sizes(), Sizes(), 2, 1, 2);
}

// A range of that name without the information, as a backend of somebody's own may open it.
void nothing_known() { RECORD_FUNCTION(at::kParamCommsCallName, std::vector<c10::IValue>()); }

// In torch 2.11, the number is an input.
void number_among_the_inputs(std::int64_t sequence) {
  std::vector<c10::IValue> inputs;
  inputs.emplace_back(at::ones({4}));
  inputs.emplace_back(call(sequence, false));
  inputs.emplace_back(group("0", "default_pg"));
  at::RecordFunction guard(at::RecordScope::FUNCTION);
  if (guard.isActive())
    guard.before(at::kParamCommsCallName,
                 c10::ArrayRef<const c10::IValue>(inputs.data(), inputs.size()));
}

}  // extern "C"
