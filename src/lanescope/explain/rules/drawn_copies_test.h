// Draws steps that end with a copy, for the rules about copies.
#pragma once
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {

// Four launches of 50 us, then a copy of 20 us by `op` on `stream`; the others run on stream 7.
inline testing::ProgramSketch with_copy(std::string_view name, std::int64_t stream,
                                        std::string_view op) {
  auto copy = testing::ProgramSketch::memcpy(name, 20, op);
  copy.stream = stream;
  testing::ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.launch(copy).end();
  }
  return program;
}

}  // namespace lanescope::explain
