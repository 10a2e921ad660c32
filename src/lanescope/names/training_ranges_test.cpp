#include "lanescope/names/training_ranges.h"

#include <gtest/gtest.h>

#include "lanescope/names/torch_optimizers.h"

namespace lanescope::names {
namespace {

TEST(TrainingRangesTest, NamesTheOptimizerOfAStep) {
  EXPECT_EQ(optimizer_of_step("Optimizer.step#AdamW.step"), "AdamW");
  EXPECT_EQ(optimizer_of_step("Optimizer.step#Mine"), "Mine");
  EXPECT_EQ(optimizer_of_step("Optimizer.zero_grad#AdamW.zero_grad"), "");
}

TEST(TrainingRangesTest, ZeroGradIsNoStep) {
  EXPECT_TRUE(is_optimizer_step("Optimizer.step#SGD.step"));
  EXPECT_FALSE(is_optimizer_step("Optimizer.zero_grad#SGD.zero_grad"));
}

TEST(TrainingRangesTest, KnowsTheFormsOfTorchsOptimizers) {
  ASSERT_NE(forms_of_optimizer("AdamW"), nullptr);
  EXPECT_TRUE(forms_of_optimizer("AdamW")->has_fused);
  ASSERT_NE(forms_of_optimizer("Adafactor"), nullptr);
  EXPECT_TRUE(forms_of_optimizer("Adafactor")->has_foreach);
  EXPECT_FALSE(forms_of_optimizer("Adafactor")->has_fused);
  EXPECT_FALSE(forms_of_optimizer("Muon")->has_foreach);
  EXPECT_EQ(forms_of_optimizer("Lion"), nullptr);
}

}  // namespace
}  // namespace lanescope::names
