#include "lanescope/analysis/roofline.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

constexpr char kH200[] =
    R"([{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132}])";
constexpr char kTwoBf16[] = R"(["c10::BFloat16", "c10::BFloat16"])";

struct Made {
  Trace trace;
  Roofline roofline;
};

// A window over everything that the sketch holds.
Made roofline_of(testing::Sketch& sketch) {
  Made made{sketch.trace(), {}};
  const auto links = compute_launch_links(made.trace);
  const auto nesting = compute_slice_nesting(made.trace);
  const auto timelines = compute_device_timelines(made.trace, links);
  const Window all{0, 1'000'000'000};
  made.roofline = compute_roofline(made.trace, links, nesting, timelines.at(0), std::span(&all, 1));
  return made;
}

// An operator of 10 us with a launch of one kernel in it.
void draw(testing::Sketch& sketch, std::int64_t id, std::string_view op, std::string_view dims,
          std::string_view types, std::string_view kernel, std::int64_t start_ns,
          std::int64_t dur_ns, std::int64_t stream = 7) {
  sketch.op(op, id * 20'000, 10'000,
            {.input_dims = std::string(dims), .input_types = std::string(types)});
  sketch.runtime("cudaLaunchKernel", id * 20'000 + 1000, 2000, {.correlation = id});
  sketch.kernel(kernel, start_ns, dur_ns, {.stream = stream, .correlation = id});
}

// 2 * 4096^3 operations at 989.5 T/s are 138.9 us; 3 * 4096^2 * 2 bytes at 4.8 TB/s are 21.0 us.
TEST(RooflineTest, RatesAMatmulByItsOperations) {
  testing::Sketch sketch;
  sketch.metadata("deviceProperties", kH200);
  draw(sketch, 1, "aten::mm", "[[4096, 4096], [4096, 4096]]", kTwoBf16, "nvjet_sm90_tst_256x128",
       100'000, 169'000);
  const Roofline roofline = roofline_of(sketch).roofline;
  ASSERT_EQ(roofline.calls.size(), 1u);
  const RooflineCall& call = roofline.calls[0];
  EXPECT_EQ(call.kind, RooflineClass::kCompute);
  EXPECT_NEAR(call.compute_floor_ns, 138'897, 2);
  EXPECT_NEAR(call.memory_floor_ns, 20'972, 2);
  EXPECT_NEAR(call.achieved_ratio(), 0.8219, 0.0001);
  EXPECT_EQ(roofline.of(RooflineClass::kCompute).time_ns, 169'000);
  EXPECT_EQ(roofline.busy_ns, 169'000);
}

// 3 * 4096^2 * 2 bytes: 21.0 us of memory, next to nothing of arithmetic.
TEST(RooflineTest, RatesAnAdditionByItsBytes) {
  testing::Sketch sketch;
  sketch.metadata("deviceProperties", kH200);
  draw(sketch, 1, "aten::add", "[[4096, 4096], [4096, 4096]]", kTwoBf16, "add", 100'000, 22'600);
  const Roofline roofline = roofline_of(sketch).roofline;
  EXPECT_EQ(roofline.calls.at(0).kind, RooflineClass::kMemory);
  EXPECT_NEAR(roofline.calls.at(0).achieved_ratio(), 0.928, 0.001);
}

// float32 counts against TF32 only where the kernel's name says tensor cores.
TEST(RooflineTest, TakesThePeakOfTheUnitsThatRan) {
  const GpuSpec* spec = find_gpu_spec(parse_gpu_devices(kH200)[0]);
  ASSERT_NE(spec, nullptr);
  EXPECT_EQ(peak_rate(*spec, "f32", MatrixUnits::kUsed), 494.5e12);
  EXPECT_EQ(peak_rate(*spec, "f32", MatrixUnits::kNotUsed), 67e12);
  EXPECT_EQ(peak_rate(*spec, "f32", MatrixUnits::kUnknown), 67e12);
  EXPECT_EQ(peak_rate(*spec, "bf16", MatrixUnits::kUsed), 989.5e12);
  EXPECT_EQ(peak_rate(*spec, "f64", MatrixUnits::kNotUsed), 34e12);
  EXPECT_FALSE(peak_rate(*spec, "bool", MatrixUnits::kUsed));
}

// Work of one operator counts once where it overlaps, and an unmodelled operator inside a modelled
// one belongs to it.
TEST(RooflineTest, UnitesTheWorkOfACall) {
  testing::Sketch sketch;
  sketch.metadata("deviceProperties", kH200);
  sketch.op("aten::mm", 0, 10'000, {.input_dims = "[[64, 64], [64, 64]]", .input_types = kTwoBf16});
  sketch.op("my::inner", 1000, 8'000);
  sketch.runtime("cudaLaunchKernel", 2000, 1000, {.correlation = 1});
  sketch.runtime("cudaLaunchKernel", 4000, 1000, {.correlation = 2});
  sketch.kernel("a", 100'000, 10'000, {.stream = 7, .correlation = 1});
  sketch.kernel("b", 105'000, 10'000, {.stream = 8, .correlation = 2});
  const Roofline roofline = roofline_of(sketch).roofline;
  ASSERT_EQ(roofline.calls.size(), 1u);
  EXPECT_EQ(roofline.calls[0].time_ns, 15'000);
}

TEST(RooflineTest, SaysWhatItCannotRate) {
  testing::Sketch sketch;  // a GPU without a description
  draw(sketch, 1, "aten::mm", "[[4096, 4096], [4096, 4096]]", kTwoBf16, "a", 100'000, 169'000);
  draw(sketch, 2, "my::op", "[[4096, 4096]]", R"(["float"])", "b", 300'000, 1000);
  const Roofline roofline = roofline_of(sketch).roofline;
  EXPECT_EQ(roofline.of(RooflineClass::kUnrated).time_ns, 169'000);
  EXPECT_EQ(roofline.of(RooflineClass::kUnknown).time_ns, 1000);
  EXPECT_EQ(roofline.of(RooflineClass::kUnknown).calls, 1u);
  EXPECT_TRUE(roofline.has_shapes);
}

// Short calls, copies from the host, communication and graphs.
TEST(RooflineTest, LeavesOutWhatARoofDoesNotLimit) {
  testing::Sketch sketch;
  sketch.metadata("deviceProperties", kH200);
  draw(sketch, 1, "aten::add", "[[8], [8]]", kTwoBf16, "short", 100'000, 2000);
  draw(sketch, 2, "aten::add", "[[8], [8]]", kTwoBf16, "ncclDevKernel_AllReduce", 200'000, 2000);
  sketch.op("aten::copy_", 100'000, 10'000, {.input_dims = "[[8], [8]]", .input_types = kTwoBf16});
  sketch.runtime("cudaMemcpyAsync", 101'000, 2000, {.correlation = 3});
  sketch.slice("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 300'000, 2000, {.correlation = 3});
  sketch.op("aten::add", 200'000, 10'000, {.input_dims = "[[8], [8]]", .input_types = kTwoBf16});
  sketch.runtime("cudaGraphLaunch", 201'000, 2000, {.correlation = 4});
  sketch.kernel("g1", 400'000, 8000, {.correlation = 4})
      .kernel("g2", 410'000, 8000, {.correlation = 4});
  const Roofline roofline = roofline_of(sketch).roofline;
  EXPECT_EQ(roofline.of(RooflineClass::kShort).time_ns, 2000);
  EXPECT_EQ(roofline.of(RooflineClass::kUnknown).time_ns, 16'000);
  EXPECT_EQ(roofline.busy_ns, 18'000);
}

TEST(RooflineTest, FindsTheDeviceByItsNumber) {
  testing::Sketch sketch;
  sketch.metadata("deviceProperties",
                  R"([{"id": 0, "name": "A", "numSms": 1}, {"id": 1, "name": "B", "numSms": 2}])");
  const Trace two = sketch.trace();
  EXPECT_EQ(find_device(two, 1).name, "B");
  EXPECT_EQ(find_device(two, 5).name, "");
  testing::Sketch equal;
  equal.metadata("deviceProperties", R"([{"id": 0, "name": "A", "numSms": 1}])");
  EXPECT_EQ(find_device(equal.trace(), 5).name, "A");
}

}  // namespace
}  // namespace lanescope::analysis
