#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

Fields with_values(std::string_view dims, std::string_view types, std::string_view values) {
  return {.input_dims = std::string(dims),
          .input_types = std::string(types),
          .concrete_inputs = std::string(values)};
}

Fields slice_of(std::string_view dims, std::string_view start) {
  return with_values("[" + std::string(dims) + ", [], [], [], []]",
                     R"(["float", "Scalar", "Scalar", "Scalar", "Scalar"])",
                     R"(["", "1", ")" + std::string(start) + R"(", "9223372036854775807", "1"])");
}

struct DrawnPositions {
  std::string_view start = "-16";  // of 64 positions
  std::string_view softmax_dim = "-1";
  std::string_view reader = "aten::exp";  // takes what is kept
  std::string_view read = "[[4, 16]]";
  std::string_view also = {};  // takes all positions of the result of gather
  bool has_softmax = true;
};

// A head of 8,192 classes, 100 us; log_softmax, 60 us; gather, 20 us; the last of 64 positions; and 100 us of other work.
std::optional<Finding> find_positions(const DrawnPositions& drawn = {}) {
  return find_in_steps("unread-positions", [&](ProgramSketch& p) {
    p.op("aten::linear", shapes("[[4, 64, 256], [8192, 256]]", kFloat), kNvjet, 100);
    if (drawn.has_softmax)
      p.op("aten::log_softmax",
           with_values("[[4, 64, 8192], [], []]", R"(["float", "Scalar", ""])",
                       R"(["", ")" + std::string(drawn.softmax_dim) + R"(", ""])"),
           "softmax_kernel", 60);
    p.op("aten::gather",
         with_values("[[4, 64, 8192], [], [4, 64, 1], []]",
                     R"(["float", "Scalar", "long int", "Scalar"])", R"(["", "-1", "", "False"])"),
         "gather_kernel", 20);
    p.begin_op("aten::squeeze",
               with_values("[[4, 64, 1], []]", R"(["float", "Scalar"])", R"(["", "-1"])"))
        .end();
    p.begin_op("aten::slice", slice_of("[4, 64]", drawn.start)).end();
    if (!drawn.also.empty())
      p.op(drawn.also, shapes("[[4, 64]]", R"(["float"])"), "other_kernel", 5);
    p.op(drawn.reader, shapes(drawn.read, R"(["float"])"), "exp_kernel", 5);
    p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 100);
  });
}

// 48 of 64 positions of 180 us.
TEST(UnreadPositionsTest, CountsTheProductAndWhatFollowsIt) {
  const auto finding = find_positions();
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 135'000);
  EXPECT_EQ(finding->brief.values.at(1).integer, 64);
  EXPECT_EQ(finding->brief.values.at(2).integer, 8192);
  EXPECT_EQ(finding->brief.values.at(3).integer, 16);
}

TEST(UnreadPositionsTest, IsQuietIfOtherPositionsMayBeRead) {
  EXPECT_FALSE(find_positions({.start = "1"}));             // all but the first
  EXPECT_FALSE(find_positions({.softmax_dim = "1"}));       // over the positions
  EXPECT_FALSE(find_positions({.also = "aten::cumsum"}));   // joins positions
  EXPECT_FALSE(find_positions({.also = "aten::mean"}));     // of all
  EXPECT_FALSE(find_positions({.also = "aten::reshape"}));  // unknown what reads it
  EXPECT_FALSE(find_positions({.read = "[[4, 32]]"}));      // what is kept only leaves the step
  EXPECT_TRUE(find_positions({.also = "aten::neg"}));
}

// x[:, :-1] shifts by one word; the cut comes later.
TEST(UnreadPositionsTest, FollowsAShiftByOnePosition) {
  const auto finding = find_in_steps("unread-positions", [](ProgramSketch& p) {
    p.op("aten::linear", shapes("[[4, 64, 256], [8192, 256]]", kFloat), kNvjet, 100);
    p.begin_op("aten::slice", with_values("[[4, 64, 8192], [], [], [], []]",
                                          R"(["float", "Scalar", "Scalar", "Scalar", "Scalar"])",
                                          R"(["", "1", "0", "-1", "1"])"))
        .end();
    p.op("aten::logsumexp",
         with_values("[[4, 63, 8192], [], []]", R"(["float", "ScalarList", "Scalar"])",
                     R"(["", "[-1]", "False"])"),
         "reduce_kernel", 80);
    p.begin_op("aten::slice", slice_of("[4, 63]", "-21")).end();
    p.op("aten::exp", shapes("[[4, 21]]", R"(["float"])"), "exp_kernel", 5);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values.at(1).integer, 63);
  EXPECT_EQ(finding->at_stake_ns, 120'000);  // 42 of 63 positions of 180 us
}

// unused-rows says so where the product's own result is cut.
TEST(UnreadPositionsTest, LeavesACutOfTheProductItselfToAnotherRule) {
  EXPECT_FALSE(find_in_steps("unread-positions", [](ProgramSketch& p) {
    p.op("aten::linear", shapes("[[4, 64, 256], [8192, 256]]", kFloat), kNvjet, 100);
    p.begin_op("aten::slice", slice_of("[4, 64, 8192]", "-16")).end();
    p.op("aten::exp", shapes("[[4, 16, 8192]]", R"(["float"])"), "exp_kernel", 5);
  }));
}

}  // namespace
}  // namespace lanescope::explain
