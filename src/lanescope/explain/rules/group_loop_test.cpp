#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
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
  bool stores = true;          // aten::copy_ ends a round
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
      if (drawn.stores) p.op("aten::copy_", {}, "copy", 2);
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
  // The mean of the next round is none of this one.
  const auto close = find_groups({.stores = false});
  ASSERT_TRUE(close);
  EXPECT_EQ(close->spared_calls.size(), 3u * 16 * 3);
}

// Four steps of 64 groups, each with a mean, a maximum and a cat. Their backward passes launch more than they do.
std::optional<Finding> find_pooling(bool by_positions, bool has_layers) {
  constexpr char kNode[] = "autograd::engine::evaluate_function: ";
  ProgramSketch program;
  std::int64_t number = 0;
  program.steps(4, [&](ProgramSketch& p) {
    const std::int64_t first = number;
    for (int group = 0; group < 64; ++group) {
      p.op("aten::eq", {}, "compare", 1);
      if (by_positions) p.begin_op("aten::where").wait("aten::nonzero_numpy").end();
      p.begin_op("aten::index", {.sequence = number++});
      if (!by_positions) p.wait("aten::nonzero");
      p.kernel("index", 1).end();
      p.op("aten::mean", {.sequence = number++}, "reduce", 1);
      p.op("aten::max", {.sequence = number++}, "reduce", 1);
      p.op("aten::cat", {.sequence = number++}, "cat", 1);
      if (has_layers) p.op("aten::linear", {}, "gemm", 1);
    }
    const char* nodes[] = {"IndexBackward0", "MeanBackward1", "MaxBackward0", "CatBackward0"};
    for (std::int64_t i = number; i-- > first;)
      p.op(std::string(kNode) + nodes[i % 4], {.sequence = i, .fwd_thread = 1}, "backward", 3);
  });
  return find_by_rule(program.trace(), "group-loop");
}

// The nodes of a step work for 64 * 4 * 3 = 768 us, the five calls of a round for 5 us.
TEST(GroupLoopTest, CountsMaximaAndTheBackwardPass) {
  for (const bool by_positions : {false, true}) {
    const auto finding = find_pooling(by_positions, false);
    ASSERT_TRUE(finding);
    EXPECT_GE(finding->at_stake_ns, us(768 + 64 * 5));
    EXPECT_EQ(finding->told_windows.size() % (64u * 4), 0u);
    EXPECT_FALSE(finding->told_windows.empty());
    EXPECT_NE(finding->action.pattern.find("scatter_reduce"), std::string::npos);
  }
  EXPECT_FALSE(find_pooling(false, true));  // experts: each group has a layer of its own
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
