// Draws chains of elementwise operators, for the rules about fusion.
#pragma once
#include <string_view>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {

inline constexpr char kSmallSquare[] = "[[1000, 1000], []]";

// A long matmul, so that the queue is full, and then these operators, one kernel each.
inline testing::ProgramSketch after_matmul(const std::vector<testing::ProgramSketch::Work>& works) {
  testing::ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 300});
    for (const testing::ProgramSketch::Work& work : works) program.launch(work);
    program.end();
  }
  return program;
}

inline testing::ProgramSketch::Work elementwise(std::string_view op, std::int64_t us,
                                                std::string_view dims = kSmallSquare) {
  return {.name = kElementwise, .us = us, .op = op, .dims = dims};
}

}  // namespace lanescope::explain
