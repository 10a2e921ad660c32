// Recognises the ranges that torch itself opens in a training loop.
#pragma once
#include <string_view>

namespace lanescope::names {

inline constexpr std::string_view kOptimizerStep = "Optimizer.step#";

// "Optimizer.step#AdamW.step": torch.optim opens it around each call of step(), and so do other
// optimizers that inherit from torch.optim.Optimizer.
inline bool is_optimizer_step(std::string_view name) { return name.starts_with(kOptimizerStep); }

// "AdamW" of "Optimizer.step#AdamW.step". Empty: the name is none of an optimizer's step.
inline std::string_view optimizer_of_step(std::string_view name) {
  if (!is_optimizer_step(name)) return {};
  name.remove_prefix(kOptimizerStep.size());
  constexpr std::string_view kEnd = ".step";
  if (name.ends_with(kEnd)) name.remove_suffix(kEnd.size());
  return name;
}

// "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
inline bool is_data_loader(std::string_view name) {
  return name.starts_with("enumerate(DataLoader)");
}

}  // namespace lanescope::names
