// Draws hardware lanes next to a drawn program: what the GPU's counters would say each `interval`.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {

struct DrawnSeries {
  std::string_view name, unit;
  std::function<double(std::int64_t us)> value_at;
  std::int64_t interval_us = 100;
};

// On device 0, to the end of the program. `peaks`: members of the description, such as
// R"("dram_peak_bytes_per_second": 4e12)".
inline Trace with_hardware(testing::ProgramSketch& program, const std::vector<DrawnSeries>& all,
                           const std::string& peaks = {}) {
  testing::Sketch& sketch = program.sketch();
  sketch.metadata("lanescope_hardware",
                  R"([{"device": 0, "interval_ns": 100000, "slow_interval_ns": 10000000)" +
                      (peaks.empty() ? "" : ", " + peaks) + "}]");
  Scalar gpu;
  gpu.number = 0;
  const std::int64_t end_us = std::max(program.cpu_us(), program.gpu_us());
  for (const DrawnSeries& series : all) {
    const TrackId track = sketch.builder().counter_track(gpu, series.name, series.unit);
    for (std::int64_t us = 0; us <= end_us; us += series.interval_us)
      sketch.builder().add_counter(track, testing::ProgramSketch::at(us), series.value_at(us));
  }
  return program.trace();
}

inline DrawnSeries constant(std::string_view name, std::string_view unit, double value,
                            std::int64_t interval_us = 100) {
  return {name, unit, [value](std::int64_t) { return value; }, interval_us};
}

// `steps` steps of one kernel of `kernel_us`; the GPU never waits.
inline testing::ProgramSketch busy_program(std::int64_t kernel_us, int steps = 4) {
  testing::ProgramSketch program;
  program.steps(steps, [kernel_us](testing::ProgramSketch& p) {
    p.begin_op("aten::mm").kernel("gemm", kernel_us).end();
  });
  return program;
}

inline constexpr char kPeak[] = R"("dram_peak_bytes_per_second": 4000000000000)";

}  // namespace lanescope::explain
