#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Each step makes a tensor on the CPU in 200 us, moves it (10 us of copy) and runs four gemms.
ProgramSketch with_built(const char* factory, std::int64_t pause_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    if (factory) program.cpu_op(factory, 200).pass(pause_us);
    program.launch(ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", 10, "aten::to"));
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.wait().end();
  }
  return program;
}

// 200 us of making, 10 us of aten::to, and 9 us more of the copy, which began 1 us before its end.
TEST(CpuBuiltTensorTest, SpeaksOfAFactoryBeforeTheCopy) {
  const auto finding = find_by_rule(with_built("aten::zeros", 0).trace(), "cpu-built-tensor");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 3);
  EXPECT_EQ(finding->at_stake_ns, 219'000);
  EXPECT_TRUE(find_by_rule(with_built("aten::zeros", 140).trace(), "cpu-built-tensor"));
}

TEST(CpuBuiltTensorTest, IsQuietAboutOtherOperatorsAndPausesBetween) {
  EXPECT_FALSE(find_by_rule(with_built("aten::stack", 0).trace(), "cpu-built-tensor"));
  EXPECT_FALSE(find_by_rule(with_built("aten::zeros", 160).trace(), "cpu-built-tensor"));
  EXPECT_FALSE(find_by_rule(with_built(nullptr, 0).trace(), "cpu-built-tensor"));
}

}  // namespace
}  // namespace lanescope::explain
