// Steps whose operators wait for the GPU, for tests.
#pragma once
#include <cstdint>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {

// An operator that waits `waits` times, 300 us each, for `upload`s or for values.
inline testing::ProgramSketch waiting(int waits, bool upload) {
  using testing::ProgramSketch;
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 100});
    const std::int64_t start = program.cpu_us();
    if (upload) program.launch(ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", 5));
    for (int k = 0; k < waits; ++k) program.call("cudaStreamSynchronize", 300);
    program.sketch().op(upload ? "aten::to" : "aten::nonzero", us(start),
                        us(program.cpu_us() - start));
    program.pass(50).launch({.us = 100}).end();
  }
  return program;
}

}  // namespace lanescope::explain
