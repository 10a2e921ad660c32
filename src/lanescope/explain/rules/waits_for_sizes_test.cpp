#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramSketch;
using ::testing::StartsWith;

// x[mask] waits for the number of its rows; .item() waits for a value.
TEST(WaitsForSizesTest, NamesMasksThatAskForASize) {
  const auto action_of = [](std::string_view inner) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().launch({.us = 50});
      program.begin_op("aten::index").wait(inner).pass(20).end();
      program.launch({.us = 50}).end();
    }
    return find_by_rule(program.trace(), "host-sync");
  };
  const auto mask = action_of("aten::nonzero");
  ASSERT_TRUE(mask);
  EXPECT_THAT(mask->brief.pattern, HasSubstr("Boolean masks"));
  EXPECT_THAT(mask->action.pattern, HasSubstr("torch.where"));
  const auto value = action_of("aten::item");
  ASSERT_TRUE(value);
  EXPECT_THAT(value->action.pattern, Not(HasSubstr("torch.where")));
}

// x[mask] may select few rows, and then torch.where computes more; x[mask] = y keeps all. The backward pass of x[mask] waits as well.
TEST(WaitsForSizesTest, AdvisesIndicesOfAMaskThatIsRead) {
  const auto action = [](std::string_view op) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.launch({.us = 50}).begin_op(op).wait("aten::nonzero").end();
      p.pass(20).launch({.us = 50});
    });
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action("autograd::engine::evaluate_function: IndexBackward0"),
              StartsWith("Make the mask's indices once"));
  EXPECT_THAT(action("aten::index"), StartsWith("If the mask keeps most rows: torch.where"));
  EXPECT_THAT(action("aten::index_put_"), StartsWith("Use torch.where"));
  EXPECT_THAT(action("autograd::engine::evaluate_function: OtherBackward0"),
              Not(HasSubstr("indices")));
}

// torch.where(mask) with one argument is what waits.
TEST(WaitsForSizesTest, AdvisesNoTorchWhereWithAMaskAlone) {
  const auto action_of = [](std::string_view op) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i)
      program.step()
          .launch({.us = 50})
          .begin_op(op)
          .wait("aten::nonzero")
          .end()
          .pass(20)
          .launch({.us = 50})
          .end();
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action_of("aten::where"), HasSubstr("torch.where(mask) alone"));
  EXPECT_THAT(action_of("aten::index"), Not(HasSubstr("alone")));
}

// What waits has advice of its own: the sum of counts may be known, a matrix sorted once.
TEST(WaitsForSizesTest, AdvisesAboutTheOperatorThatWaits) {
  const auto action_of = [](std::string_view op) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i)
      program.step().launch({.us = 50}).wait(op).pass(20).launch({.us = 50}).end();
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action_of("aten::repeat_interleave"), HasSubstr("output_size"));
  EXPECT_THAT(action_of("aten::one_hot"), HasSubstr("num_classes"));
  EXPECT_THAT(action_of("aten::one_hot_of_mine"), Not(HasSubstr("num_classes")));
  EXPECT_THAT(action_of("aten::coalesce"), HasSubstr("coalesce it once"));
  EXPECT_THAT(action_of("aten::item"), HasSubstr("Keep the value"));
}

// Three reads by one mask and a write make its indices four times. A comparison between them makes another mask.
TEST(WaitsForSizesTest, MakesTheIndicesOfOneMaskOnce) {
  const auto finding_with = [](std::string_view between) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().launch({.us = 50}).cpu_op("aten::gt", 2);
      for (const char* op : {"aten::index", "aten::index", "aten::index", "aten::index_put_"}) {
        program.begin_op(op).wait("aten::nonzero").pass(20).end();
        program.launch({.us = 50}).cpu_op(between, 2);
      }
      program.end();
    }
    return find_by_rule(program.trace(), "host-sync");
  };
  const auto same = finding_with("aten::mul");
  ASSERT_TRUE(same);
  EXPECT_THAT(same->action.pattern, HasSubstr("mask.nonzero(as_tuple=True)"));
  EXPECT_EQ(same->brief.values.at(1).text, "aten::index_put_");
  const auto others = finding_with("aten::gt");
  ASSERT_TRUE(others);
  EXPECT_THAT(others->action.pattern, HasSubstr("torch.where"));
  // One of the four waits of a step stays.
  EXPECT_NEAR(static_cast<double>(same->at_stake_ns),
              0.75 * static_cast<double>(others->at_stake_ns), 2);
}

// torch.bincount has no mask to multiply with.
TEST(WaitsForSizesTest, AdvisesAboutCounts) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step().launch({.us = 50}).wait("aten::bincount").pass(20).launch({.us = 50}).end();
  const auto finding = find_by_rule(program.trace(), "host-sync");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, HasSubstr("scatter_add_"));
}

// Each step counts twice, waits, and splits a tensor by sizes that it has read.
TEST(WaitsForSizesTest, SeesSizesThatAreTheSameEachTime) {
  const auto action = [](std::string_view first, std::string_view second) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (const std::string_view sizes : {first, second}) {
        program.launch({.us = 50}).begin_op("aten::bincount").wait("aten::item").end();
        program.begin_op("aten::split_with_sizes",
                         {.input_dims = "[[100, 8], [], []]",
                          .input_types = R"(["float", "ScalarList", "Scalar"])",
                          .concrete_inputs = R"(["", ")" + std::string(sizes) + R"(", "0"])"});
        program.end().launch({.us = 50});
      }
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action("[20, 31, 22, 27]", "[20, 31, 22, 27]"), HasSubstr("Compute it once"));
  EXPECT_THAT(action("[20, 31, 22, 27]", "[24, 27, 22, 27]"), HasSubstr("scatter_add_"));
  EXPECT_THAT(action("[25, 25, 25, 25]", "[25, 25, 25, 25]"), HasSubstr("scatter_add_"));
  EXPECT_THAT(action("[60, 30, 10]", "[60, 30, 10]"), HasSubstr("scatter_add_"));
}

}  // namespace
}  // namespace lanescope::explain
