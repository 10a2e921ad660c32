#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_memory_test.h"

namespace lanescope::explain {
namespace {

// A step of 1 ms with 400 MB; 300 MB more live for `us` around the peak.
AllocatorSketch with_temporary(std::int64_t us) {
  AllocatorSketch program(0, 0);
  program.step(1, 0, 1000).op("aten::linear", 0, 100).op("aten::softmax", 400, 300);
  program.change(50, 400 * kMB, 1).change(450, 300 * kMB, 2).change(450 + us, -300 * kMB, 2);
  program.change(900, -400 * kMB, 1);
  return program;
}

TEST(MemoryPeakTest, SpeaksWhenTheTopLivesShortly) {
  const auto finding = find_by_rule(with_temporary(40).trace(), "memory-peak");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[1].integer, 700 * kMB);
  EXPECT_EQ(finding->verdict.values[2].integer, 300 * kMB);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 40'000);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(2).text, "aten::softmax");
}

TEST(MemoryPeakTest, IsQuietWhenItLivesLong) {
  EXPECT_FALSE(find_by_rule(with_temporary(60).trace(), "memory-peak"));
}

}  // namespace
}  // namespace lanescope::explain
