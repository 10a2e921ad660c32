#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

TEST(EarlierWorkTest, SpeaksOfWorkWithoutALaunchAtTheStart) {
  ProgramSketch program = loop(3, 4, {.us = 50});
  program.sketch().kernel("gemm", ProgramSketch::at(900), ProgramSketch::at(60));
  const auto finding = find_by_rule(program.trace(), "earlier-work");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 1);
}

TEST(EarlierWorkTest, IsQuietAboutALostLaunchInTheMiddle) {
  ProgramSketch program = loop(3, 4, {.us = 50});
  program.sketch().kernel("gemm", ProgramSketch::at(1300), ProgramSketch::at(1));
  EXPECT_FALSE(find_by_rule(program.trace(), "earlier-work"));
}

}  // namespace
}  // namespace lanescope::explain
