#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/operator_advice.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// A step of a GPU that is always busy: `op` with a kernel of `us`, then a product of 100 us.
Trace step_with(std::string_view op, std::int64_t us, std::string_view kernel = "radix_sort",
                std::string_view around = {}, int calls = 1) {
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    for (int i = 0; i < calls; ++i) {
      if (!around.empty()) p.begin_op(around);
      p.begin_op(op).kernel(kernel, us).end();
      if (!around.empty()) p.end();
    }
    p.begin_op("aten::mm").kernel("gemm", 100).end();
  });
  return program.trace();
}

TEST(CostlyOperatorTest, CountsTheWorkOfTheOperator) {
  const auto finding = find_by_rule(step_with("aten::randperm", 300), "costly-operator");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].text, "aten::randperm");
  EXPECT_EQ(finding->verdict.values[2].integer, 1);  // calls per step
  EXPECT_EQ(finding->arithmetic[0].values[0].integer, us(300));
  EXPECT_EQ(finding->arithmetic[0].values[1].integer, 0);  // the GPU never waits in these calls
  EXPECT_EQ(finding->at_stake_ns, us(300));
}

TEST(CostlyOperatorTest, IsQuietWhenItIsASmallPart) {
  EXPECT_TRUE(find_by_rule(step_with("aten::randperm", 12), "costly-operator"));
  EXPECT_FALSE(find_by_rule(step_with("aten::randperm", 7), "costly-operator"));
}

TEST(CostlyOperatorTest, KnowsOnlyItsRows) {
  EXPECT_FALSE(find_by_rule(step_with("aten::cumsum", 300), "costly-operator"));
}

// index_put_ without accumulate runs another kernel, and is no fault.
TEST(CostlyOperatorTest, WantsTheKernelThatIsSlow) {
  EXPECT_TRUE(find_by_rule(step_with("aten::index_put_", 300, "indexing_backward_kernel<float>"),
                           "costly-operator"));
  EXPECT_FALSE(
      find_by_rule(step_with("aten::index_put_", 300, "index_put_kernel"), "costly-operator"));
}

// A few cells are a model; a cell for each time step is a loop. nn.LSTM may call cells itself.
TEST(CostlyOperatorTest, WantsManyCellsThatTheProgramCalled) {
  EXPECT_TRUE(find_by_rule(step_with("aten::lstm_cell", 30, "cell", {}, 8), "costly-operator"));
  EXPECT_FALSE(find_by_rule(step_with("aten::lstm_cell", 30, "cell", {}, 7), "costly-operator"));
  EXPECT_FALSE(
      find_by_rule(step_with("aten::lstm_cell", 30, "cell", "aten::lstm", 8), "costly-operator"));
}

// topk of long rows sorts: that is its own business.
TEST(CostlyOperatorTest, LeavesSortsOfOtherOperatorsAlone) {
  EXPECT_TRUE(find_by_rule(step_with("aten::sort", 300), "costly-operator"));
  EXPECT_FALSE(
      find_by_rule(step_with("aten::sort", 300, "radix_sort", "aten::topk"), "costly-operator"));
}

TEST(CostlyOperatorTest, RowsAreInOrder) {
  const auto rows = rules::operator_advice();
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(),
                             [](const auto& a, const auto& b) { return a.op < b.op; }));
  for (const auto& row : rows) {
    EXPECT_TRUE(std::string(row.source).starts_with("https://")) << row.op;
    EXPECT_LE(std::string(row.action).size(), 75u) << row.op;
  }
}

}  // namespace
}  // namespace lanescope::explain
