// What the texts about an owner's GPU work say of its inputs and results.
#include "lanescope/explain/owner_mechanism.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/owner_advice.h"
#include "lanescope/explain/owner_words.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

struct Told {
  Sentence mechanism, advice;
  bool uses_gpu_well = false;
  std::int64_t value(std::size_t from_end) const {
    return mechanism.values.at(mechanism.values.size() - from_end).integer;
  }
};

// A step of one operator with a kernel, on an H200.
Told told_of(std::string_view op, const testing::Fields& inputs, std::int64_t kernel_us,
             std::string_view kernel = "k") {
  const Trace trace =
      draw_steps([&](testing::ProgramSketch& p) { p.op(op, inputs, kernel, kernel_us); }, kH200);
  const auto facts = gather_facts(trace);
  const Owner& owner = step_owners(*facts)->owners.at(0);
  EXPECT_EQ(mechanism_of(owner), Mechanism::kGpuWork);
  return {mechanism_text(*facts, owner), advice_text(*facts, owner), uses_gpu_well(owner)};
}

// 1000 us of the path, of which the CPU has 600 and the kernels 400; ten kernels of 90 or 89 us.
TEST(OwnerMechanismTest, LaunchesThatKeepTheGpuBusyAreGpuWork) {
  const Trace trace =
      draw_steps([](testing::ProgramSketch& p) { p.op("aten::mm", {}, "k", 100); }, kH200);
  const auto facts = gather_facts(trace);
  Owner owner;
  owner.kind = OwnerKind::kBackward;
  owner.total_ns = us(1000);
  owner.time_ns[static_cast<std::size_t>(simulate::PathKind::kHost)] = us(600);
  owner.time_ns[static_cast<std::size_t>(simulate::PathKind::kCompute)] = us(400);
  owner.work.launches = 10;
  owner.work.gpu_ns = us(900);
  EXPECT_EQ(mechanism_of(owner), Mechanism::kGpuWork);
  EXPECT_THAT(mechanism_text(*facts, owner).pattern, ::testing::Not(::testing::HasSubstr("CPU")));
  owner.work.gpu_ns = us(890);
  EXPECT_EQ(mechanism_of(owner), Mechanism::kLaunching);
}

// A graph of a product of 300 us, an addition of 100 us and a fill of 20 us: 71 % and 24 %; the last has less than a tenth.
TEST(OwnerMechanismTest, NamesTheWorkOfAGraphByKind) {
  testing::Sketch sketch;
  for (std::int64_t i = 1; i <= 4; ++i) {
    const std::int64_t at = i * 1000;
    sketch.annotation("ProfilerStep#" + std::to_string(i), us(at), us(1000));
    sketch.runtime("cudaGraphLaunch", us(at + 1), us(10), {.correlation = i});
    sketch.kernel("ampere_sgemm_128x64_nn", us(at + 12), us(300), {.correlation = i});
    sketch.kernel(kElementwise, us(at + 312), us(100), {.correlation = i});
    sketch.kernel("reduce_kernel", us(at + 412), us(20), {.correlation = i});
    sketch.runtime("cudaStreamSynchronize", us(at + 20), us(412), {.correlation = 100 + i});
  }
  const Trace trace = sketch.trace();
  const auto facts = gather_facts(trace);
  const Owner* graph = nullptr;
  for (const Owner& each : step_owners(*facts)->owners)
    if (each.name == "cudaGraphLaunch") graph = &each;
  ASSERT_TRUE(graph);
  const Sentence text = owner_name(*facts, *graph);
  EXPECT_EQ(text.pattern, "{} ({} {}, {} {})");
  EXPECT_EQ(text.values.at(1).text, "matrix products");
  EXPECT_NEAR(text.values.at(2).real, 300.0 / 420, 1e-6);
  EXPECT_EQ(text.values.at(3).text, "elementwise");
  EXPECT_NEAR(text.values.at(4).real, 100.0 / 420, 1e-6);
}

// [1024, 1, 64] and [1, 1024, 64] make 67,108,864 elements out of 65,536.
TEST(OwnerMechanismTest, SaysWhatIsMadeOutOfLittle) {
  const Told told = told_of("aten::maximum", shapes("[[1024, 1, 64], [1, 1024, 64]]", kFloat), 200);
  EXPECT_THAT(told.mechanism.pattern, ::testing::HasSubstr("; makes {} elements out of {}"));
  EXPECT_EQ(told.value(2), 1024 * 1024 * 64);
  EXPECT_EQ(told.value(1), 1024 * 64);
  EXPECT_THAT(told_of("aten::maximum", shapes("[[1024, 1024, 64], [1, 1024, 64]]", kFloat), 200)
                  .mechanism.pattern,
              ::testing::Not(::testing::HasSubstr("elements out of")));
}

// [8192, 512] x [512, 8192] makes 67,108,864 elements out of 4,194,304: 0.069 ms at the peak of bf16.
TEST(OwnerMechanismTest, LeavesOutProductsThatUseTheGpuWell) {
  const auto inputs = shapes("[[8192, 512], [512, 8192]]", kBf16);
  EXPECT_THAT(told_of("aten::mm", inputs, 100, kNvjet).mechanism.pattern,
              ::testing::Not(::testing::HasSubstr("elements out of")));
  EXPECT_THAT(told_of("aten::mm", inputs, 300, kNvjet).mechanism.pattern,
              ::testing::HasSubstr("elements out of"));
}

// expand() makes both as large as the result; each stores 65,536 elements.
TEST(OwnerMechanismTest, CountsRepeatedElementsOnce) {
  const Told told = told_of(
      "aten::maximum",
      shapes("[[1024, 1024, 64], [1024, 1024, 64]]", kFloat, "[[64, 0, 1], [0, 64, 1]]"), 200);
  EXPECT_EQ(told.value(1), 1024 * 64);
}

// 4.8 MB are read in 1 us at 4.8 TB/s; the operator has no roofline.
TEST(OwnerMechanismTest, ComparesWithReadingTheInputs) {
  const auto inputs = shapes("[[1200000]]", R"(["float"])");
  const Told told = told_of("aten::unique_dim", inputs, 300);
  EXPECT_THAT(told.mechanism.pattern, ::testing::HasSubstr("as long as reading its inputs"));
  EXPECT_DOUBLE_EQ(told.mechanism.values.back().real, 300);
  EXPECT_THAT(
      told_of("aten::unique_dim", shapes("[[120000000]]", R"(["float"])"), 300).mechanism.pattern,
      ::testing::Not(::testing::HasSubstr("as long as reading")));
  // Four bytes say nothing of what a kernel reads, nor do the recorded inputs of a node of autograd.
  EXPECT_THAT(told_of("aten::unique_dim", shapes("[[1]]", R"(["float"])"), 300).mechanism.pattern,
              ::testing::Not(::testing::HasSubstr("as long as reading")));
  EXPECT_THAT(told_of("UniqueDimBackward0", inputs, 300).mechanism.pattern,
              ::testing::Not(::testing::HasSubstr("as long as reading")));
}

// 0.139 ms at the peak of bf16: 77 % of 180 us, 46 % of 300.
TEST(OwnerMechanismTest, SaysThatOnlyLessWorkHelpsNearThePeak) {
  EXPECT_THAT(told_of("aten::mm", shapes(kSquare, kBf16), 180, kNvjet).advice.pattern,
              ::testing::HasSubstr("only less work helps"));
  EXPECT_THAT(told_of("aten::mm", shapes(kSquare, kBf16), 300, kNvjet).advice.pattern,
              ::testing::Not(::testing::HasSubstr("only less work helps")));
}

// 66 % of the peak of bf16 in 210 us, and 53 % in 260: there faster kernels help as well.
TEST(OwnerMechanismTest, KnowsWhereMostlyLessWorkHelps) {
  EXPECT_TRUE(told_of("aten::mm", shapes(kSquare, kBf16), 210, kNvjet).uses_gpu_well);
  EXPECT_FALSE(told_of("aten::mm", shapes(kSquare, kBf16), 260, kNvjet).uses_gpu_well);
  EXPECT_FALSE(told_of("aten::mm", {}, 210, kNvjet).uses_gpu_well);
}

// Two columns of [4194304, 16]: 2 x 16.8 MB at 4.8 TB/s are 7.0 us, 3 % of 250. In 30 us, or in rows, they are no cause.
TEST(OwnerMechanismTest, SaysThatAColumnIsReadFromRows) {
  constexpr char kColumns[] = "[[4194304], [4194304]]";
  const auto columns = shapes(kColumns, kFloat, "[[16], [16]]");
  const Told told = told_of("aten::mul_", columns, 250, kElementwise);
  EXPECT_THAT(told.mechanism.pattern, ::testing::HasSubstr("reads one of {} numbers of each row"));
  EXPECT_EQ(told.value(1), 16);
  EXPECT_THAT(told.advice.pattern, ::testing::HasSubstr("Store each column contiguously"));
  const auto quiet = ::testing::Not(::testing::HasSubstr("numbers of each row"));
  EXPECT_THAT(told_of("aten::mul_", columns, 30, kElementwise).mechanism.pattern, quiet);
  const auto rows = shapes(kColumns, kFloat, "[[1], [1]]");
  EXPECT_THAT(told_of("aten::mul_", rows, 250, kElementwise).mechanism.pattern, quiet);
  const auto transposed = shapes("[[2048, 2048], [2048, 2048]]", kFloat, "[[1, 2048], [2048, 1]]");
  EXPECT_THAT(told_of("aten::mul_", transposed, 250, kElementwise).mechanism.pattern, quiet);
}

// Windows of 256 with a step of 1 over 2,048 rows of 4,096: 8,388,608 numbers are read, 33.6 MB, which takes 7.0 us at
// 4.8 TB/s; all windows together would be 8 GB. Adding
// up 2,013,790,208 numbers takes 30 us.
TEST(OwnerMechanismTest, CountsOverlappingWindowsOnce) {
  const auto inputs = shapes("[[2048, 3841, 256], [1]]", R"(["float", ""])", "[[4096, 1, 1], []]");
  const Told told = told_of("aten::mean", inputs, 1530);
  EXPECT_THAT(told.mechanism.pattern, ::testing::HasSubstr("of what the arithmetic units allow"));
  EXPECT_NEAR(told.mechanism.values.back().real, 30.0 / 1530, 0.001);
}

// 2 x 400 MB in 100 us would be 8 TB/s: the bytes came from somewhere else than memory.
TEST(OwnerMechanismTest, NamesNoShareOfThePeakAboveIt) {
  const auto inputs = shapes("[[100000000]]", R"(["float"])");
  const auto text = [&](std::int64_t kernel_us) {
    return told_of("aten::relu", inputs, kernel_us, kElementwise).mechanism.pattern;
  };
  EXPECT_THAT(text(200), ::testing::HasSubstr("of what the memory's bandwidth allows"));
  EXPECT_THAT(text(100), ::testing::Not(::testing::HasSubstr("bandwidth allows")));
}

}  // namespace
}  // namespace lanescope::explain
