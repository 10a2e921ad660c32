#include "lanescope/analysis/roofline_use.h"

#include <gtest/gtest.h>

#include <utility>

#include "lanescope/analysis/steps.h"
#include "lanescope/testing/program_sketch.h"

namespace lanescope::analysis {
namespace {

using lanescope::testing::ProgramSketch;

// Ten calls of an addition of 2^20 floats, in two kernels of 30 and 20 us each, with samples of 10
// us: 800 GB/s read, 400 GB/s written.
TEST(RooflineUseTest, ARowHasTheRatesOfAllItsCallsWork) {
  ProgramSketch program;
  for (int i = 0; i < 10; ++i)
    program
        .begin_op("aten::add",
                  {.input_dims = "[[1048576], [1048576]]", .input_types = R"(["float", "float"])"})
        .kernel("add_kernel", 30)
        .kernel("rest_kernel", 20)
        .end();
  program.sketch().metadata("lanescope_hardware", R"([{"device": 0, "interval_ns": 10000}])");
  Scalar gpu;
  gpu.number = 0;
  TraceBuilder& builder = program.sketch().builder();
  const TrackId read = builder.counter_track(gpu, "DRAM read", "GB/s"),
                write = builder.counter_track(gpu, "DRAM write", "GB/s");
  for (std::int64_t us = 0; us < program.gpu_us(); us += 10) {
    builder.add_counter(read, ProgramSketch::at(us), 800);
    builder.add_counter(write, ProgramSketch::at(us), 400);
  }
  const Trace trace = program.trace();
  const LaunchLinks links = compute_launch_links(trace);
  const SliceNesting nesting = compute_slice_nesting(trace);
  const auto timelines = compute_device_timelines(trace, links);
  ASSERT_EQ(timelines.size(), 1u);
  const Window all{trace.window_start_ns(), trace.window_end_ns()};
  const Roofline roofline =
      compute_roofline(trace, links, nesting, timelines[0], std::span(&all, 1));
  const auto rows = compute_roofline_rows(trace, roofline);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].time_ns, 500'000);
  const auto uses = measure_roofline_rows(trace, timelines[0], roofline, rows);
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_GE(uses[0].sample_count, 48u);
  EXPECT_NEAR(*uses[0].dram_read_bytes_per_second, 800e9, 20e9);
  EXPECT_NEAR(*uses[0].dram_write_bytes_per_second, 400e9, 10e9);
  EXPECT_FALSE(uses[0].tensor_active_ratio);
  // The model: 3 x 4 MiB in 50 us are 251.7 GB/s; 1200 GB/s are 4.77 times as many.
  EXPECT_NEAR(*moved_ratio(rows[0], uses[0]), 4.77, 0.12);
}

TEST(RooflineUseTest, WithoutSamplesThereIsNothing) {
  ProgramSketch program;
  program.begin_op("aten::mm").kernel("gemm", 10).end();
  const Trace trace = program.trace();
  const LaunchLinks links = compute_launch_links(trace);
  const auto timelines = compute_device_timelines(trace, links);
  EXPECT_TRUE(measure_roofline_rows(trace, timelines[0], {}, {}).empty());
  EXPECT_FALSE(moved_ratio({}, {}));
}

}  // namespace
}  // namespace lanescope::analysis
