#include <gtest/gtest.h>

#include <optional>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnGroups {
  int groups = 16;
  bool has_mask = true;  // the index is a boolean mask, which is searched
  std::string_view compare = "aten::eq", reduce = "aten::mean";
  bool takes_samples = false;  // the mask is of one sample
};

// A step with 13 products and a loop over groups. All is GPU work of a CPU that is ahead, but for the search of the mask, which waits.
std::optional<Finding> find_groups(const DrawnGroups& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int i = 0; i < 13; ++i) p.op("aten::mm", {}, "gemm", 15);
    for (int group = 0; group < drawn.groups; ++group) {
      if (drawn.takes_samples) p.cpu_op("aten::select", 2);
      p.op(drawn.compare, {}, "compare", 10);
      p.begin_op("aten::index");
      if (drawn.has_mask) p.wait("aten::nonzero");
      p.kernel("index", 10).end();
      p.op(drawn.reduce, {}, "reduce", 10);
      p.op("aten::copy_", {}, "copy", 2);
    }
  });
  return find_by_rule(program.trace(), "group-loop");
}

// Three kernels of 10 us in each of 16 rounds, and what the GPU is idle during these calls: the wait ends 2 us after the GPU's work, and
// launching takes a few more.
TEST(GroupLoopTest, CountsTheCallsOfAllRounds) {
  const auto finding = find_groups({});
  ASSERT_TRUE(finding);
  EXPECT_GE(finding->at_stake_ns, us(16 * 30));
  EXPECT_LE(finding->at_stake_ns, us(16 * 40));
  EXPECT_EQ(finding->spared_calls.size(), 3u * 16 * 3);
  EXPECT_TRUE(finding->gain_is_bound);
  EXPECT_NE(finding->action.pattern.find("index_add_"), std::string::npos);
}

TEST(GroupLoopTest, IsQuietAboutOtherLoops) {
  EXPECT_FALSE(find_groups({.groups = 15}));
  EXPECT_FALSE(find_groups({.has_mask = false}));       // a lookup by numbers
  EXPECT_FALSE(find_groups({.compare = "aten::gt"}));   // rows above a limit are no group
  EXPECT_FALSE(find_groups({.reduce = "aten::sort"}));  // no sum
  EXPECT_FALSE(find_groups({.takes_samples = true}));   // rows of one sample after the other
}

}  // namespace
}  // namespace lanescope::explain
