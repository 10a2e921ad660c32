#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

struct DrawnWrites {
  std::string node = "LeakyReluBackward1";  // inside of CopySlices
  int writes = 4;                           // of a step
  std::int64_t next = 1;         // the view's node has the number of CopySlices and so many more
  std::int64_t view_thread = 1;  // that recorded it; 1: the thread of CopySlices
  std::string all = {},
              written =
                  {};  // shapes of the tensor behind the view, and of what the activation writes
};

Fields fields_of_shape(const std::string& dims) {
  Fields fields;
  if (dims.empty()) return fields;
  fields.input_dims = dims;
  fields.input_types = R"(["float"])";
  return fields;
}

// A step: a product of 600 us, then nodes CopySlices: a copy of 20 us, a clone of 20 us, the activation's node of 30 us and a copy
// of 20 us; each after the node of the view, with a fill and a copy of 10 us. The GPU is always busy.
std::optional<Finding> find_writes(const DrawnWrites& drawn) {
  const std::string evaluate = "autograd::engine::evaluate_function: ";
  ProgramSketch program;
  std::int64_t number = 0;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin_op("aten::mm").kernel("gemm", 600).end();
    for (int i = 0; i < drawn.writes; ++i) {
      number += 10;
      p.begin_op(evaluate + "AsStridedBackward0",
                 {.sequence = number + drawn.next, .fwd_thread = drawn.view_thread});
      p.begin_op("AsStridedBackward0", {.sequence = number + drawn.next});
      p.op("aten::new_zeros", {}, "fill", 10).op("aten::copy_", {}, "copy", 10).end().end();
      p.begin_op(evaluate + "torch::autograd::CopySlices", {.sequence = number, .fwd_thread = 1});
      p.begin_op("torch::autograd::CopySlices", {.sequence = number});
      p.op("aten::copy_", fields_of_shape(drawn.all), "copy", 20).op("aten::clone", {}, "copy", 20);
      p.begin_op(drawn.node, {.sequence = number - 1});
      p.op("aten::leaky_relu_backward", fields_of_shape(drawn.written), "leaky", 30).end();
      p.op("aten::copy_", {}, "copy", 20).end().end();
    }
  });
  return find_by_rule(program.trace(), "written-views");
}

// 4 x (20 + 20 + 20 + 10 + 10) us in each step; the activation's own 30 us stay.
TEST(WrittenViewsTest, CountsAllButTheActivationsOwnNode) {
  const auto finding = find_writes({});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(4 * 80));
  EXPECT_EQ(finding->brief.values.at(0).text, "leaky ReLU");
  EXPECT_EQ(finding->brief.values.at(1).integer, 4);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("inplace=False"));
  // Another tensor's view is not counted: 4 x (20 + 20 + 20) us.
  EXPECT_EQ(find_writes({.next = 5})->at_stake_ns, us(4 * 60));
  EXPECT_EQ(find_writes({.view_thread = 2})->at_stake_ns, us(4 * 60));
}

// pred[..., :2].sigmoid_() writes 2 of 85 columns: the program needs that. Without shapes nobody knows.
TEST(WrittenViewsTest, IsQuietAboutAPartOfATensor) {
  EXPECT_FALSE(find_writes({.all = "[[16, 3, 85]]", .written = "[[16, 3, 2]]"}));
  const auto whole = find_writes({.all = "[[16, 3, 85]]", .written = "[[48, 85]]"});
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->at_stake_ns, us(4 * 80));
  EXPECT_THAT(whole->action.pattern, ::testing::StartsWith("Use inplace=False"));
  const auto unknown = find_writes({.all = "[[16, 3, 85]]"});
  ASSERT_TRUE(unknown);
  EXPECT_THAT(unknown->action.pattern, ::testing::StartsWith("If nothing reads the tensor"));
}

// Its copies are not told again with other advice; costly-operator counts the activations' own 30 us, too.
TEST(WrittenViewsTest, ExplainsTheCopies) {
  const auto finding = find_writes({});
  ASSERT_TRUE(finding);
  std::map<std::string, std::int64_t> explained;
  for (const Explained& part : finding->explains) explained[part.rule] = part.at_stake_ns;
  EXPECT_EQ(explained, (std::map<std::string, std::int64_t>{{"costly-operator", us(4 * 110)},
                                                            {"exposed-copy", us(4 * 80)},
                                                            {"slow-backward", us(4 * 80)}}));
}

// x[:, 0] = y is a write that the program needs.
TEST(WrittenViewsTest, IsQuietAboutOtherWrites) {
  EXPECT_FALSE(find_writes({.node = "CopyBackwards"}));
  EXPECT_FALSE(find_writes({.writes = 1}));
}

}  // namespace
}  // namespace lanescope::explain
