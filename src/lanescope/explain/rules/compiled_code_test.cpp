#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

TEST(CompiledCodeTest, SaysWhatWasFused) {
  const auto finding = find_by_rule(
      loop(3, 4, {.name = "triton_poi_fused_add_relu_0", .us = 20}).trace(), "compiled-code");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 1);
  EXPECT_EQ(finding->verdict.values[1].integer, 2);
}

TEST(CompiledCodeTest, SaysWhenNothingWasFused) {
  ProgramSketch program;
  for (int i = 0; i < 3; ++i)
    program.step().begin("Torch-Compiled Region: 0/0").launch({}).end().end();
  const auto finding = find_by_rule(program.trace(), "compiled-code");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, ::testing::HasSubstr("fused nothing"));
}

// In every step a compilation tries a kernel for 40 us, a graph launches 30 us, eager code 30.
TEST(CompiledCodeTest, CallsTrialsOfTheCompilerNoEagerCode) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin("CachingAutotuner.benchmark_all_configs (dynamo_timed)");
    program.pass(1).launch({.name = "triton_poi_fused_add_mul_0", .us = 40}).end();
    program.begin("Torch-Compiled Region: 0/0").pass(1).begin("## Call CompiledFxGraph fa ##");
    program.pass(1).launch({.name = "triton_poi_fused_add_mul_0", .us = 30}).end().end();
    program.launch({.us = 30}).end();
  }
  const auto finding = find_by_rule(program.trace(), "compiled-code");
  ASSERT_TRUE(finding);
  ASSERT_EQ(finding->arithmetic.size(), 2u);
  EXPECT_DOUBLE_EQ(finding->arithmetic[1].values.at(0).real, 0.3);
  EXPECT_DOUBLE_EQ(finding->arithmetic[1].values.at(1).real, 0.4);
  EXPECT_DOUBLE_EQ(finding->arithmetic[1].values.at(2).real, 0.3);
}

TEST(CompiledCodeTest, IsQuietOnEagerCode) {
  EXPECT_FALSE(find_by_rule(loop(3, 4, {}).trace(), "compiled-code"));
}

// A step of one generated kernel of 30 us from a compiled graph and 90 us of eager work.
TEST(CompiledCodeTest, SaysHowMuchCompiledGraphsLaunched) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step()
        .begin("Torch-Compiled Region: 0/0")
        .pass(1)
        .begin("## Call CompiledFxGraph fa ##");
    program.pass(1).launch({.name = "triton_poi_fused_add_mul_0", .us = 30}).end().end();
    program.launch({.us = 90}).end();
  }
  const auto finding = find_by_rule(program.trace(), "compiled-code");
  ASSERT_TRUE(finding);
  ASSERT_EQ(finding->arithmetic.size(), 2u);
  EXPECT_DOUBLE_EQ(finding->arithmetic[1].values[0].real, 0.25);
  EXPECT_THAT(finding->try_next, ::testing::Contains(::testing::HasSubstr("not compiled")));
}

}  // namespace
}  // namespace lanescope::explain
