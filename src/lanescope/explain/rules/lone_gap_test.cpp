#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

ProgramSketch with_gap(int step, std::int64_t us, bool every_step) {
  ProgramSketch program;
  for (int i = 0; i < 6; ++i) {
    program.step();
    program.launch({.us = 5}).launch({.name = "softmax", .us = 5});
    if (i == step || every_step) program.cpu_op("aten::cat", us);
    program.launch({.name = "add", .us = 5}).end();
  }
  return program;
}

TEST(LoneGapTest, SpeaksOfAGapInOneStep) {
  const auto finding = find_by_rule(with_gap(3, 500, false).trace(), "lone-gap");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[1].integer, 4);  // ProfilerStep#4
  ASSERT_GE(finding->once.values.size(), 3u);
  EXPECT_EQ(finding->once.values[2].text, "aten::cat");
}

TEST(LoneGapTest, IsQuietAboutAGapInEveryStep) {
  EXPECT_FALSE(find_by_rule(with_gap(3, 500, true).trace(), "lone-gap"));
}

}  // namespace
}  // namespace lanescope::explain
