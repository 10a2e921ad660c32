#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

Fields tensor_fields(std::string_view dims, std::string_view types,
                     std::string_view concrete = "") {
  return {.input_dims = std::string(dims),
          .input_types = std::string(types),
          .concrete_inputs = std::string(concrete)};
}

struct DrawnUnusedRows {
  std::string_view cut = "aten::select";
  std::string_view concrete = R"(["", "1", "-1"])";
  std::string_view read = "[[4, 1000]]";  // by softmax
  bool reads_all = false;                 // mean
  bool casts = false;
};

// A step on the CPU: [4, 64, 32] times a weight of 1000 rows, 400 us; a view of the result; softmax.
Trace draw_unused_rows(const DrawnUnusedRows& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin_op("aten::linear",
               tensor_fields("[[4, 64, 32], [1000, 32], []]", R"(["float", "float", ""])"));
    p.pass(398).end();
    if (drawn.casts)
      p.begin_op("aten::to", tensor_fields("[[4, 64, 1000]]", R"(["float"])")).pass(98).end();
    p.begin_op(drawn.cut, tensor_fields("[[4, 64, 1000], [], []]",
                                        R"(["float", "Scalar", "Scalar"])", drawn.concrete));
    p.end();
    if (!drawn.read.empty())
      p.begin_op("aten::softmax", tensor_fields(drawn.read, R"(["float"])")).pass(8).end();
    if (drawn.reads_all)
      p.begin_op("aten::mean", tensor_fields("[[4, 64, 1000]]", R"(["float"])")).pass(8).end();
  });
  return program.trace();
}

// One row of 64 is read: 63 of 64 parts of 400 us.
TEST(UnusedRowsTest, CountsWhatIsNotRead) {
  const auto finding = find_by_rule(draw_unused_rows({}), "unused-rows");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(400) * 63 / 64);
  EXPECT_EQ(finding->brief.values.at(1).text, "[4, 64, 1000]");
  EXPECT_NEAR(finding->brief.values.at(2).real, 1.0 / 64, 1e-6);
}

// A cast of the whole result in between goes, too.
TEST(UnusedRowsTest, CountsWhatPassesItOn) {
  const auto finding = find_by_rule(draw_unused_rows({.casts = true}), "unused-rows");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(500) * 63 / 64);
}

TEST(UnusedRowsTest, KnowsSlices) {
  EXPECT_TRUE(
      find_by_rule(draw_unused_rows({.cut = "aten::slice",
                                     .concrete = R"(["", "1", "-8", "9223372036854775807", "1"])",
                                     .read = "[[4, 8, 1000]]"}),
                   "unused-rows"));
  // Half of the columns are read.
  EXPECT_FALSE(find_by_rule(draw_unused_rows({.cut = "aten::slice",
                                              .concrete = R"(["", "2", "0", "500", "1"])",
                                              .read = "[[4, 64, 500]]"}),
                            "unused-rows"));
  // A slice of everything.
  EXPECT_FALSE(
      find_by_rule(draw_unused_rows({.cut = "aten::slice",
                                     .concrete = R"(["", "1", "0", "9223372036854775807", "1"])",
                                     .read = "[[4, 64, 1000]]"}),
                   "unused-rows"));
}

TEST(UnusedRowsTest, IsQuietWhereAllIsReadOrNothingIsKnown) {
  EXPECT_FALSE(find_by_rule(draw_unused_rows({.reads_all = true}), "unused-rows"));
  EXPECT_FALSE(
      find_by_rule(draw_unused_rows({.read = ""}), "unused-rows"));  // the view leaves the step
}

// Frames of a spectrogram: 640 are made and 40 kept. 100 us of stft, abs, product and log each: 15 of 16 parts.
TEST(UnusedRowsTest, GoesBackToWhatMakesTheFrames) {
  const auto found = [](std::string_view first, std::string_view in_between) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.begin_op(first, tensor_fields("[[16, 102400]]", R"(["float"])")).pass(98).end();
      p.begin_op(in_between, tensor_fields("[[16, 201, 640]]", R"(["float"])")).pass(98).end();
      p.begin_op("aten::matmul",
                 tensor_fields("[[80, 201], [16, 201, 640]]", R"(["float", "float"])"));
      p.pass(98).end();
      p.begin_op("aten::log", tensor_fields("[[16, 80, 640]]", R"(["float"])")).pass(98).end();
      p.begin_op("aten::slice",
                 tensor_fields("[[16, 80, 640], [], [], [], []]",
                               R"(["float", "Scalar", "Scalar", "Scalar", "Scalar"])",
                               R"(["", "2", "0", "9223372036854775807", "16"])"))
          .end();
      p.begin_op("aten::conv1d", tensor_fields("[[16, 80, 40]]", R"(["float"])")).pass(98).end();
    });
    return find_by_rule(program.trace(), "unused-rows");
  };
  const auto frames = found("aten::stft", "aten::abs");
  ASSERT_TRUE(frames);
  EXPECT_EQ(frames->at_stake_ns, us(400) * 15 / 16);
  EXPECT_EQ(frames->action.values.at(0).text, "aten::stft");
  // A softmax over the frames needs all of them; what makes them is not known.
  EXPECT_EQ(found("aten::stft", "aten::softmax")->at_stake_ns, us(200) * 15 / 16);
  EXPECT_EQ(found("aten::roll", "aten::abs")->at_stake_ns, us(300) * 15 / 16);
}

// 40 masks are enlarged in 200 us, go through sigmoid in 100 us, and `kept` of them are taken.
std::optional<Finding> find_in_masks(std::string_view kept, std::string_view read_later = "[[4]]",
                                     std::string_view first = "aten::upsample_bilinear2d") {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin_op(first, tensor_fields("[[1, 40, 16, 16], [], [], []]",
                                    R"(["float", "ScalarList", "Scalar", ""])",
                                    R"(["", "[64, 64]", "False", ""])"));
    p.pass(198).end();
    p.begin_op("aten::select",
               tensor_fields("[[1, 40, 64, 64], [], []]", R"(["float", "Scalar", "Scalar"])",
                             R"(["", "0", "0"])"));
    p.end();
    p.begin_op("aten::sigmoid", tensor_fields("[[40, 64, 64]]", R"(["float"])")).pass(98).end();
    p.begin_op("aten::index", tensor_fields("[[40, 64, 64], []]", R"(["float", ""])"));
    p.pass(8).end();
    p.begin_op("aten::amax", tensor_fields(kept, R"(["float"])")).pass(8).end();
    p.begin_op("aten::mean", tensor_fields(read_later, R"(["float"])")).pass(8).end();
  });
  return find_by_rule(program.trace(), "unused-rows");
}

// 4 of 40 are kept: nine tenths of 300 us.
TEST(UnusedRowsTest, SeesRowsThatAreEnlargedBeforeTheyAreChosen) {
  const auto finding = find_in_masks("[[4, 64, 64]]");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(300) * 9 / 10);
  EXPECT_EQ(finding->brief.values.at(1).text, "[1, 40, 64, 64]");
  EXPECT_EQ(finding->action.values.at(0).text, "aten::upsample_bilinear2d");
  EXPECT_FALSE(find_in_masks("[[20, 64, 64]]"));                   // half of them
  EXPECT_FALSE(find_in_masks("[[4, 64, 64]]", "[[40, 64, 64]]"));  // all are read later
  EXPECT_FALSE(find_in_masks("[[4, 64, 64]]", "[[4]]", "aten::roll"));
}

}  // namespace
}  // namespace lanescope::explain
