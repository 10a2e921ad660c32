#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

struct DrawnTrainingMode {
  bool draws_mask = true;
  bool has_backward = false;
  bool has_statistics = true;  // batch norm keeps a mean and a variance
};

// A step on the CPU: 200 us of convolution, batch norm of 50 in training mode, dropout of 100.
Trace draw_training_mode(const DrawnTrainingMode& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.cpu_op("aten::conv2d", 200);
    const std::string type = drawn.has_statistics ? R"("float", "float")" : R"("", "")";
    Fields norm{.input_dims = "[[2, 4, 8, 8], [4], [4], [4], [4], [], [], [], []]",
                .input_types = R"(["float", "float", "float", )" + type +
                               R"(, "Scalar", "Scalar", "Scalar", "Scalar"])",
                .concrete_inputs = R"(["", "", "", "", "", "True", "0.1", "1e-05", "True"])"};
    p.begin_op("aten::batch_norm", norm).pass(48).end();
    p.begin_op("aten::dropout");
    if (drawn.draws_mask) p.cpu_op("aten::bernoulli_", 60);
    p.pass(38).end();
    if (drawn.has_backward)
      p.cpu_op("autograd::engine::evaluate_function: ConvolutionBackward0", 300);
  });
  return program.trace();
}

// 60 us for the mask, 38 next to it, and 1 us at each end of the operator; a third of the norm's 50 us.
TEST(TrainingModeTest, NamesDropoutAndBatchNorm) {
  const auto finding = find_by_rule(draw_training_mode({}), "training-mode");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(100) + us(50) / 3);
  EXPECT_NE(finding->brief.pattern.find("batch norm"), std::string::npos);
  EXPECT_NE(finding->action.pattern.find("eval()"), std::string::npos);
}

// Batch norm without kept statistics uses those of the batch in eval mode, too.
TEST(TrainingModeTest, LeavesOutNormsWithoutStatistics) {
  const auto finding = find_by_rule(draw_training_mode({.has_statistics = false}), "training-mode");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.pattern.find("batch norm"), std::string::npos);
}

TEST(TrainingModeTest, IsQuietInEvalModeAndInTraining) {
  EXPECT_FALSE(find_by_rule(draw_training_mode({.draws_mask = false}), "training-mode"));
  EXPECT_FALSE(find_by_rule(draw_training_mode({.has_backward = true}), "training-mode"));
}

// Dropout may be wanted: the first screen says so.
TEST(TrainingModeTest, SaysThatRandomnessMayBeWanted) {
  const auto finding = find_by_rule(draw_training_mode({}), "training-mode");
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->action.pattern.starts_with("Right if the randomness is wanted"));
}

}  // namespace
}  // namespace lanescope::explain
