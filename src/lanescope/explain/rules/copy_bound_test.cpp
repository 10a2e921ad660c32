#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// A step: one kernel of 20 us, then a blocking copy of 100 us whose call holds the CPU for 160.
// The call begins 30 us after the kernel's launch has ended.
Trace with_blocking_copy(std::string_view op, std::int64_t other_cpu_us = 0) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    program.launch({.us = 20}).pass(30);
    ProgramSketch::Work copy = ProgramSketch::memcpy("Memcpy DtoH (Device -> Pageable)", 100, op);
    copy.call = "cudaMemcpyAsync";
    copy.call_us = 160;
    program.launch(copy);
    if (other_cpu_us > 0) program.cpu_op("aten::clamp", other_cpu_us);
    program.end();
  }
  return program.trace();
}

TEST(CopyBoundTest, CountsWaitsInsideTheCopysCall) {
  const auto finding = find_by_rule(with_blocking_copy("aten::to"), "copy-bound");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kBound);
  EXPECT_FALSE(find_by_rule(with_blocking_copy("aten::to"), "host-bound"));
  EXPECT_EQ(finding->verdict.values.at(3).integer, 20'000);
}

// The copy's 100 us alone and the waits in its call are shorter than the wait for 400 us of clamp.
TEST(CopyBoundTest, IsQuietWhereOtherCpuWorkTakesLonger) {
  EXPECT_FALSE(find_by_rule(with_blocking_copy("aten::to", 400), "copy-bound"));
  EXPECT_TRUE(find_by_rule(with_blocking_copy("aten::to", 400), "host-bound"));
}

TEST(CopyBoundTest, AdvisesNoPinnedMemoryWhereItIsPinned) {
  const auto advice = [](std::string_view name) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i)
      program.step().launch({.us = 20}).launch(ProgramSketch::memcpy(name, 200)).end();
    const auto finding = find_by_rule(program.trace(), "copy-bound");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(advice("Memcpy HtoD (Pageable -> Device)"), ::testing::HasSubstr("pinned memory"));
  EXPECT_THAT(advice("Memcpy HtoD (Pinned -> Device)"),
              ::testing::Not(::testing::HasSubstr("pinned")));
}

// Copies on the device are work like any other.
TEST(CopyBoundTest, IsQuietAboutCopiesOnTheDevice) {
  const ProgramSketch::Work copy{
      .name = "Memcpy DtoD (Device -> Device)", .us = 50, .category = "gpu_memcpy"};
  EXPECT_FALSE(find_by_rule(loop(4, 10, copy).trace(), "copy-bound"));
}

// 128 copies of 1 KB: the CPU is in aten::to nearly all the time.
TEST(CopyBoundTest, AdvisesToJoinManySmallCopies) {
  testing::Sketch sketch;
  std::int64_t at = 0, id = 0;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t start = at;
    for (int k = 0; k < 128; ++k, at += 20'000) {
      sketch.op("aten::to", at, 19'000);
      sketch.runtime("cudaMemcpyAsync", at + 10'000, 5'000, {.correlation = ++id});
      sketch.slice("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at + 12'000, 1'000,
                   {.correlation = id, .bytes = 1024});
    }
    sketch.annotation("ProfilerStep#" + std::to_string(i), start, at - start);
  }
  const auto finding = find_by_rule(sketch.trace(), "copy-bound");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("copy once"));
  // Steps of 128 copies, of 1024 bytes each.
  EXPECT_EQ(finding->arithmetic.at(1).values.at(0).integer, 128);
  EXPECT_EQ(finding->arithmetic.at(1).values.at(1).integer, 128 * 1024);
}

}  // namespace
}  // namespace lanescope::explain
