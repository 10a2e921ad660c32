#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

Fields result_fields(std::string_view dims) {
  return {.input_dims = "[" + std::string(dims) + "]", .input_types = R"(["float", "float"])"};
}

struct DrawnPreviews {
  int made = 4;
  std::string_view last_read = "[64, 128]";  // by mean, after the last one
  bool reads_each = false;                   // after each of them
  bool has_own_kernel = false;               // that no operator launches
};

// Steps of four rounds: a product [64, 64] x [64, 32] that goes on, 100 us; an image of it: [64, 32] x [32, 128], 200 us, and its
// sigmoid, 50 us. At the end a mean reads the last image.
Trace draw_previews(const DrawnPreviews& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int round = 0; round < drawn.made; ++round) {
      p.op("aten::mm", result_fields("[64, 64], [64, 32]"), "gemm", 100);
      p.op("aten::tanh", result_fields("[64, 32]"), "tanh", 10);
      p.op("aten::mm", result_fields("[64, 32], [32, 128]"), "gemm", 200);
      p.op("aten::sigmoid", result_fields("[64, 128]"), "sigmoid", 50);
      if (drawn.reads_each) p.op("aten::mean", result_fields("[64, 128]"), "mean", 5);
    }
    p.op("aten::mean", result_fields(drawn.last_read), "mean", 5);
    if (drawn.has_own_kernel) p.kernel("triton", 5);
    p.wait();
  });
  return program.trace();
}

// Three of four images are made for nothing, 250 us each. A weight of [64, 32] is taken elsewhere, so tanh may be needed.
TEST(UnreadResultsTest, CountsResultsThatAreReplaced) {
  const auto finding = find_by_rule(draw_previews({}), "unread-results");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values.at(0).text, "aten::sigmoid");
  EXPECT_EQ(finding->brief.values.at(1).integer, 4);
  EXPECT_EQ(finding->brief.values.at(2).text, "[64, 128]");
  EXPECT_EQ(finding->brief.values.at(3).integer, 1);
  EXPECT_EQ(finding->at_stake_ns, us(3 * 250));
}

TEST(UnreadResultsTest, IsQuietIfTheyMayBeRead) {
  const auto is_reported = [](const DrawnPreviews& drawn) {
    return find_by_rule(draw_previews(drawn), "unread-results").has_value();
  };
  EXPECT_FALSE(is_reported({.reads_each = true}));
  EXPECT_FALSE(is_reported({.last_read = "[64, 32]"}));  // returned, perhaps
  EXPECT_FALSE(is_reported({.made = 1}));
  EXPECT_FALSE(is_reported({.has_own_kernel = true}));
  EXPECT_FALSE(is_reported({.last_read = "[[64, 128], [64, 128], [64, 128], [64, 128]]"}));  // cat
}

// Six clones of 40 us after a replay; `read` takes tensors of their size.
Trace draw_clones(const Fields& read) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.launch({.us = 300, .op = "graph", .call = "cudaGraphLaunch"});
    for (int i = 0; i < 6; ++i)
      p.begin_op("aten::clone", result_fields("[128, 64]")).copy(40, 32768).end();
    p.op("aten::cat", read, "cat", 10);
    p.wait();
  });
  return program.trace();
}

TEST(UnreadResultsTest, CountsClonesThatNothingReads) {
  const auto finding = find_by_rule(draw_clones(result_fields("[64, 64]")), "unread-results");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(6 * 40));
  EXPECT_EQ(finding->action.pattern, "Clone only the outputs that are read later");
  // Two of six are read.
  const auto two =
      find_by_rule(draw_clones(result_fields("[[128, 64], [128, 64]]")), "unread-results");
  ASSERT_TRUE(two);
  EXPECT_EQ(two->at_stake_ns, us(4 * 40));
  // Four are.
  EXPECT_FALSE(
      find_by_rule(draw_clones(result_fields("[[128, 64], [128, 64], [128, 64], [128, 64]]")),
                   "unread-results"));
}

}  // namespace
}  // namespace lanescope::explain
