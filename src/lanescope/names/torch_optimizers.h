// Which faster forms of step() the optimizers of torch.optim have.
#pragma once
#include <algorithm>
#include <array>
#include <string_view>

namespace lanescope::names {

struct OptimizerForms {
  std::string_view optimizer;  // as optimizer_of_step() returns it
  bool has_foreach = false;    // one kernel for lists of tensors: foreach=True
  bool has_fused = false;      // one kernel for the whole step of a list: fused=True
};

// Source: the arguments of the classes in torch/optim of torch 2.13. Muon takes foreach and refuses it.
inline constexpr std::array kOptimizerForms = {
    OptimizerForms{"ASGD", true, false},        OptimizerForms{"Adadelta", true, false},
    OptimizerForms{"Adafactor", true, false},   OptimizerForms{"Adagrad", true, true},
    OptimizerForms{"Adam", true, true},         OptimizerForms{"AdamW", true, true},
    OptimizerForms{"Adamax", true, false},      OptimizerForms{"LBFGS", false, false},
    OptimizerForms{"Muon", false, false},       OptimizerForms{"NAdam", true, false},
    OptimizerForms{"RAdam", true, false},       OptimizerForms{"RMSprop", true, false},
    OptimizerForms{"Rprop", true, false},       OptimizerForms{"SGD", true, true},
    OptimizerForms{"SparseAdam", false, false},
};

// Null: torch.optim has no optimizer of this name, so its forms are unknown.
inline const OptimizerForms* forms_of_optimizer(std::string_view optimizer) {
  const auto row =
      std::find_if(kOptimizerForms.begin(), kOptimizerForms.end(),
                   [&](const OptimizerForms& each) { return each.optimizer == optimizer; });
  return row == kOptimizerForms.end() ? nullptr : &*row;
}

}  // namespace lanescope::names
