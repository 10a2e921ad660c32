#include "lanescope/names/training_ranges.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lanescope::names
