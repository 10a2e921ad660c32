#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

struct DrawnReplay {
  std::string_view whole = "[256, 64]";
  std::string_view written = "[32, 64]";
  std::string_view read = "[32, 64]";
  std::string_view call = "cudaGraphLaunch";
};

Fields of_size(std::string_view dims) { return {.input_dims = "[" + std::string(dims) + "]"}; }

// Steps of: a slice that is copied into, a replay of 800 us, a slice that is read.
Trace draw_replay(const DrawnReplay& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin_op("aten::slice", of_size(drawn.whole)).end();
    p.begin_op("aten::copy_", of_size(drawn.written)).copy(2, 8192).end();
    p.launch({.name = "gemm", .us = 800, .op = "graph", .call = drawn.call});
    p.begin_op("aten::slice", of_size(drawn.whole)).end();
    p.op("aten::mean", of_size(drawn.read), "mean", 4);
    p.wait();
  });
  return program.trace();
}

// 224 of 256 rows are padding: seven eighths of 800 us.
TEST(PaddedReplayTest, CountsTheShareOfTheOtherRows) {
  const auto finding = find_by_rule(draw_replay({}), "padded-replay");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(700));
  EXPECT_EQ(finding->brief.values.at(0).integer, 256);
  EXPECT_EQ(finding->brief.values.at(1).integer, 32);
}

TEST(PaddedReplayTest, IsQuietIfTheRowsAreUsed) {
  const auto is_reported = [](const DrawnReplay& drawn) {
    return find_by_rule(draw_replay(drawn), "padded-replay").has_value();
  };
  EXPECT_FALSE(is_reported({.written = "[200, 64]", .read = "[200, 64]"}));  // most of them
  EXPECT_FALSE(is_reported({.written = "[256, 64]"}));  // the last rows of a whole input are read
  EXPECT_FALSE(is_reported({.read = "[256, 64]"}));     // all of the output is read
  EXPECT_FALSE(is_reported({.call = "cudaLaunchKernel"}));
}

}  // namespace
}  // namespace lanescope::explain
