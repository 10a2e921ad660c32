#include "lanescope/analysis/iteration_marks.h"

#include <array>
#include <string>

#include "lanescope/names/training_ranges.h"

namespace lanescope::analysis {

bool is_step_of_loop(std::string_view name) {
  return names::is_optimizer_step(name) || names::is_data_loader(name) ||
         name.starts_with("ProfilerStep#");
}

bool is_part_of_iteration(std::string_view name) {
  constexpr std::array<std::string_view, 16> kLibrary = {
      "TSL:",        "CCCL:",    "Torch-Compiled", "CompiledFxGraph",
      "TorchDynamo", "Pregraph", "AOTDisp",        "aten::",
      "autograd::",  "nccl:",    "c10d",           "gloo:",
      "dynamo",      "triton",   "Optimizer.",     "record_param_comms"};
  constexpr std::array<std::string_view, 9> kModel = {"layer", "block",  "attention", "attn", "mlp",
                                                      "norm",  "expert", "embed",     "head"};
  if (contains_any(name, kLibrary)) return true;
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return contains_any(lower, kModel);
}

}  // namespace lanescope::analysis
