// Draws replays of CUDA graphs, and steps that could be a CUDA graph.
#pragma once
#include <algorithm>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {

// Four steps, each with ten launches of 1 us of work. `odd_differs`: every second step ends with
// another kernel. `waits`: the CPU waits in the middle of each step.
inline testing::ProgramSketch small_steps(bool odd_differs, bool waits) {
  testing::ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k) {
      program.launch({.name = odd_differs && i % 2 == 1 && k == 9 ? "other" : "gemm", .us = 1});
      if (waits && k == 4) program.wait("aten::item");
    }
    program.end();
  }
  return program;
}

// Replays of a graph of three kernels of 100 us, one every `period_us`.
inline testing::Sketch replays(std::int64_t period_us, int count = 5) {
  testing::Sketch sketch;
  std::int64_t free_us = 0;
  for (int i = 0; i < count; ++i) {
    const std::int64_t at = i * period_us, start = std::max(at + 12, free_us);
    sketch.runtime("cudaGraphLaunch", us(at), us(10), {.correlation = i + 1});
    for (int k = 0; k < 3; ++k)
      sketch.kernel("gemm", us(start + k * 100), us(100), {.correlation = i + 1});
    free_us = start + 300;
  }
  return sketch;
}

// Four steps of 1 ms. Each replays a graph of six kernels, except step `bare`, which launches them one by one.
inline testing::Sketch stepped(int bare) {
  testing::Sketch sketch;
  std::int64_t id = 0;
  for (int i = 1; i <= 4; ++i) {
    const std::int64_t at = i * 1000;
    sketch.annotation("ProfilerStep#" + std::to_string(i), us(at), us(1000));
    if (i != bare) {
      sketch.runtime("cudaGraphLaunch", us(at), us(10), {.correlation = ++id});
      for (int k = 0; k < 6; ++k)
        sketch.kernel("gemm", us(at + 12 + k * 100), us(100), {.correlation = id});
      continue;
    }
    for (int k = 0; k < 6; ++k) {
      sketch.op("aten::mm", us(at + k * 150), us(20));
      sketch.runtime("cudaLaunchKernel", us(at + k * 150 + 5), us(5), {.correlation = ++id});
      sketch.kernel("gemm", us(at + k * 150 + 12), us(100), {.correlation = id});
    }
  }
  return sketch;
}

}  // namespace lanescope::explain
