// Draws a training loop without a GPU, for the rules that also look at the CPU alone.
#pragma once
#include <string>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {

inline constexpr std::int64_t kUs = 1'000;

// Steps of that many us. Each has 100 us of forward, 200 us of backward (a matmul of 195 us), 50 us
// of the optimizer and the given wait for a batch; nothing else is recorded.
struct CpuLoop {
  std::vector<std::int64_t> steps_us = {1'000, 1'000, 1'000, 1'000};
  std::int64_t batch_us = 30;
};
inline Trace draw_cpu_loop(const CpuLoop& loop) {
  testing::Sketch sketch;
  std::int64_t at = 0;
  int number = 0;
  for (const std::int64_t length : loop.steps_us) {
    sketch.annotation("ProfilerStep#" + std::to_string(number++), at * kUs, length * kUs);
    sketch.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", (at + 1) * kUs,
                      loop.batch_us * kUs);
    const std::int64_t forward = at + 2 + loop.batch_us;
    sketch.op("aten::linear", forward * kUs, 100 * kUs)
        .op("aten::addmm", (forward + 10) * kUs, 80 * kUs);
    sketch
        .op("autograd::engine::evaluate_function: AddmmBackward0", (forward + 101) * kUs, 200 * kUs)
        .op("aten::mm", (forward + 103) * kUs, 195 * kUs);
    sketch.annotation("Optimizer.step#SGD.step", (forward + 302) * kUs, 50 * kUs);
    at += length;
  }
  return sketch.trace();
}

}  // namespace lanescope::explain
