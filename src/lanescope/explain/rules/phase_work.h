// The GPU work of one phase of a training loop in the steady steps, by operator.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lanescope/analysis/training_phases.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

struct OpCount {
  std::uint64_t kernels = 0;
  std::int64_t gpu_ns = 0;
  SliceId longest = kNone<SliceId>;
};

// Communication is left out: a sharded optimizer's collectives are no part of its arithmetic.
struct PhaseWork {
  std::vector<const analysis::DeviceWork*> works;
  std::map<std::string, OpCount> ops;
  std::uint64_t multi_tensor = 0;  // kernels over lists of tensors
  bool any_range = false;          // the trace marks the phase at all
};

PhaseWork work_of(const Facts& facts, const std::vector<analysis::Phase>& phases,
                  analysis::Phase phase);

// At least 1.
std::uint64_t steps_of(const Facts& facts);

// Adds the three operators with most GPU time as evidence.
void add_ops(const PhaseWork& work, Finding& finding);

// A backward pass or an optimizer's step begins in these windows; null: anywhere in the trace.
bool trains(const Facts& facts, const std::vector<analysis::Window>* windows = nullptr);

inline constexpr char kNeedsOptimizer[] =
    "an optimizer of torch.optim inside the recorded steps (its Optimizer.step range)";

}  // namespace lanescope::explain::rules
