#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// A backward pass of six nodes, 40 us of work each; the first `checked` look for NaN: work of 3 us,
// then a wait.
Trace backward(int checked, std::string_view around = "autograd::engine::evaluate_function: ") {
  ProgramSketch program;
  for (int step = 0; step < 6; ++step) {
    program.step();
    for (int node = 0; node < 6; ++node) {
      program.begin_op(std::string(around) + "MmBackward0").kernel("gemm", 40);
      if (node < checked) {
        program.begin_op("aten::isnan").kernel("ne", 3).end();
        program.wait("aten::item");
      }
      program.end();
    }
    program.end();
  }
  return program.trace();
}

TEST(AnomalyModeTest, SeesChecksInAllNodes) {
  const auto finding = find_by_rule(backward(6), "anomaly-mode");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 6);
  EXPECT_EQ(finding->verdict.values[1].integer, 6);
  EXPECT_EQ(finding->arithmetic[0].values[1].integer, us(6 * 3));  // the work of the checks
}

// A program that looks for NaN in three of its nodes does so itself.
TEST(AnomalyModeTest, IsQuietAboutFewChecks) {
  EXPECT_TRUE(find_by_rule(backward(4), "anomaly-mode"));
  EXPECT_FALSE(find_by_rule(backward(3), "anomaly-mode"));
}

// Checks of the forward pass are the program's own.
TEST(AnomalyModeTest, IsQuietOutsideTheBackwardPass) {
  EXPECT_FALSE(find_by_rule(backward(6, "MyFunction: "), "anomaly-mode"));
}

}  // namespace
}  // namespace lanescope::explain
