#include "lanescope/explain/rules/optimizer_steps.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::explain::rules {
namespace {

using testing::Sketch;

// Two steps of an optimizer on two threads, with an operator in the second; zero_grad is none.
TEST(OptimizerStepsTest, AreInOrderOfTimeAndHoldTheirOperators) {
  Sketch sketch;
  sketch.annotation("Optimizer.step#Adam.step", 300'000, 50'000)
      .op("aten::_fused_adam_", 310'000, 20'000)
      .annotation("Optimizer.zero_grad#Adam.zero_grad", 400'000, 20'000)
      .op("aten::zero_", 405'000, 5'000)
      .annotation("Optimizer.step#SGD.step", 100'000, 50'000, {.tid = 101});
  const Trace trace = sketch.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  EXPECT_EQ(optimizer_steps_ns(*facts), (std::vector<std::int64_t>{100'000, 300'000}));
  ASSERT_EQ(optimizer_steps(*facts).size(), 2u);
  const SliceId second = optimizer_steps(*facts)[1];
  EXPECT_EQ(trace.name(second), "Optimizer.step#Adam.step");
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId around = optimizer_step_around(*facts, SliceId{i});
    const std::string_view name = trace.name(SliceId{i});
    if (name == "aten::_fused_adam_") {
      EXPECT_EQ(around, second);
    } else if (name == "aten::zero_") {
      EXPECT_EQ(around, kNone<SliceId>);
    }
  }
}

}  // namespace
}  // namespace lanescope::explain::rules
