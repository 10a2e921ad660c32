#include <gtest/gtest.h>

#include <optional>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

void draw_rows(ProgramSketch& p, bool by_mask) {
  p.begin_op("aten::index");
  if (by_mask)
    p.wait("aten::nonzero");
  else
    p.kernel("gather", 2);
  p.end();
}

// Each launch takes 10 us of the CPU and 2 us of the GPU.
void draw_round(ProgramSketch& p, bool by_mask, std::string_view reduction) {
  p.launch({.us = 2, .op = "aten::eq"});
  draw_rows(p, by_mask);
  p.launch({.us = 2, .op = reduction}).launch({.us = 2, .op = "aten::copy_"}).pass(40);
}

std::optional<Finding> find_groups(int groups, bool by_mask = true,
                                   std::string_view reduction = "aten::mean") {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.launch({.us = 200, .op = "aten::cdist"});
    for (int i = 0; i < 8; ++i) p.launch({.us = 2, .op = "aten::relu"});
    for (int group = 0; group < groups; ++group) draw_round(p, by_mask, reduction);
  });
  return find_by_rule(program.trace(), "loop-over-groups");
}

// A round takes 10 us to compare, 7 us to find its rows, 20 us for two launches, and 40 us of Python: 77 us. From the second round to the
// reduction of the twelfth are 11 * 77 - 50 = 797 us. In these the GPU works (11 + 11 + 10) * 2 - 1 = 63 us (the last kernel ends 1 us
// later), and 32 kernels begin 2 us after their calls: 670 us are left.
TEST(LoopOverGroupsTest, NamesALoopThatFindsRowsByMasks) {
  const auto finding = find_groups(12);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->at_stake_ns, us(670));
  EXPECT_EQ(finding->brief.values.at(0).integer, 12);
  EXPECT_EQ(finding->explains.front().at_stake_ns, finding->at_stake_ns);
}

// Each step is one round: the steps are the loop.
TEST(LoopOverGroupsTest, CountsRoundsThatAreSteps) {
  ProgramSketch program;
  program.steps(20, [&](ProgramSketch& p) { draw_round(p, true, "aten::sum"); });
  const auto finding = find_by_rule(program.trace(), "loop-over-groups");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values.at(0).integer, 19);
}

// Few groups, rows by known indices, and rows that are not reduced.
TEST(LoopOverGroupsTest, IsQuietAboutOtherLoops) {
  EXPECT_FALSE(find_groups(7));
  EXPECT_FALSE(find_groups(12, false));
  EXPECT_FALSE(find_groups(12, true, "aten::mul"));
  EXPECT_TRUE(find_groups(12, true, "aten::amax"));
}

}  // namespace
}  // namespace lanescope::explain
