// Draws a loop whose first step takes longer, for the rules about the first step.
#pragma once

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {

// Steps of ten launches; the first spends `extra_us` more, on the profiler or in an operator.
inline testing::ProgramSketch with_first_step(std::int64_t extra_us, bool by_profiler) {
  testing::ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    program.launch({.us = 5});
    if (i == 0 && by_profiler) program.overhead("Activity Buffer Request", extra_us);
    if (i == 0 && !by_profiler) program.cpu_op("aten::cudnn_convolution", extra_us);
    for (int k = 0; k < 9; ++k) program.launch({.us = 5});
    program.end();
  }
  return program;
}

}  // namespace lanescope::explain
