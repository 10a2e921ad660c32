#include <gtest/gtest.h>

#include "lanescope/explain/predicted_gains.h"
#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Four steps; in each the CPU pins for `pin_us`, and then the GPU copies for 100 us and computes for 50.
Trace draw_pinning(std::int64_t pin_us, const char* op = "aten::pin_memory") {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.cpu_op(op, pin_us).copy(100, 1 << 20, "Memcpy HtoD (Pinned -> Device)").kernel("gemm", 50);
  });
  return program.trace();
}

// A step of the CPU takes 200 us, two calls of 1 us and 1 us more; the GPU works 150 us of that and is idle for 53, all
// but a few of them while the CPU pins.
TEST(PinningInStepTest, TellsWhatThePinningHoldsUp) {
  const auto finding = find_by_rule(draw_pinning(200), "pinning-in-step");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values.at(0).integer, us(200));
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), static_cast<double>(us(50)), us(3));
  EXPECT_EQ(finding->spared_calls.size(), 3u);
}

// The copy stays: the step is then as long as the copy and the kernel. Copying a step ahead gains nothing while the CPU
// pins for longer than the GPU works.
TEST(PinningInStepTest, PromisesWhatTheGpuNoLongerWaits) {
  const Trace trace = draw_pinning(200);
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  const auto explanation = run_rules_and_gains(*facts, {.only = {}, .off = {}, .threads = 1});
  ASSERT_TRUE(explanation);
  ASSERT_TRUE(explanation->gains);
  bool is_found = false;
  for (const Finding& finding : explanation->findings) {
    if (finding.rule == "pinning-in-step") {
      is_found = true;
      EXPECT_EQ(finding.gain.state, Gain::State::kPredicted);
      const std::int64_t rest_ns = explanation->gains->base().step_ns - us(150);
      EXPECT_NEAR(static_cast<double>(finding.gain.gain_ns), static_cast<double>(rest_ns), us(2));
      EXPECT_GT(rest_ns, us(30));
    }
    if (finding.rule == "exposed-copy") {
      EXPECT_EQ(finding.at_stake_ns, us(100));
      EXPECT_LT(explanation->gains->shown_ns(finding), us(2));
    }
  }
  EXPECT_TRUE(is_found);
}

// Hidden by the GPU's work of the step before.
TEST(PinningInStepTest, IsQuietWhereTheGpuIsBusyMeanwhile) {
  EXPECT_FALSE(find_by_rule(draw_pinning(100), "pinning-in-step"));
  EXPECT_FALSE(find_by_rule(draw_pinning(200, "aten::clone"), "pinning-in-step"));
}

}  // namespace
}  // namespace lanescope::explain
