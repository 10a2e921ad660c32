#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

// Forward on one thread, backward on the engine's. The forward kernel ends 112 us after the step
// began; the backward launch ends `late_us` after the step began and its kernel begins 2 us later.
// With `late_steps` only the last steps are late, and the others launch at 150 us.
Sketch turn(std::int64_t usually_late_us, int late_steps = 4) {
  Sketch sketch;
  std::int64_t id = 0;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = i * 2000, late_us = i < 4 - late_steps ? 150 : usually_late_us;
    sketch.annotation("ProfilerStep#" + std::to_string(i), us(at), us(2000));
    sketch.op("aten::mm", us(at), us(12))
        .runtime("cudaLaunchKernel", us(at + 5), us(5), {.correlation = ++id});
    sketch.kernel("gemm", us(at + 12), us(100), {.correlation = id});
    sketch.op("autograd::engine::evaluate_function: MmBackward0", us(at + late_us - 10), us(12),
              {.tid = 200});
    sketch.runtime("cudaLaunchKernel", us(at + late_us - 5), us(5),
                   {.tid = 200, .correlation = ++id});
    for (int k = 0; k < 8; ++k) {  // the rest of backward is queued in time
      sketch.kernel("gemm_backward", us(at + late_us + 2 + k * 80), us(80), {.correlation = id});
      if (k == 7) break;
      sketch.runtime("cudaLaunchKernel", us(at + late_us + 3 + k * 8), us(5),
                     {.tid = 200, .correlation = ++id});
    }
  }
  return sketch;
}

TEST(BackwardGapTest, SpeaksWhenTheFirstBackwardLaunchIsLate) {
  const auto finding = find_by_rule(turn(1312).trace(), "backward-gap");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(1200));  // [112, 1312) of each step
  EXPECT_EQ(finding->sample_count, 3u);
}

// In two of three steady steps it is a habit, in one it is not.
TEST(BackwardGapTest, IsQuietAboutWhatHappensOnce) {
  EXPECT_TRUE(find_by_rule(turn(1800, 2).trace(), "backward-gap"));
  EXPECT_FALSE(find_by_rule(turn(1800, 1).trace(), "backward-gap"));
}

// A wait for the GPU between the loss and backward() is to be removed; where there is none, none is named.
TEST(BackwardGapTest, NamesAWaitOnlyWhereThereIsOne) {
  Sketch waiting = turn(1312);
  for (int i = 0; i < 4; ++i) waiting.runtime("cudaStreamSynchronize", us(i * 2000 + 300), us(50));
  const auto with = find_by_rule(waiting.trace(), "backward-gap");
  const auto without = find_by_rule(turn(1312).trace(), "backward-gap");
  ASSERT_TRUE(with && without);
  EXPECT_NE(with->action.pattern.find(".item()"), std::string::npos);
  EXPECT_EQ(without->action.pattern, "Move logging, hooks and other Python to after backward()");
}

// A quarter of the time or more is named.
TEST(BackwardGapTest, NamesWhatRunsBetweenThem) {
  const auto find = [](std::int64_t op_us) {
    Sketch sketch = turn(1312);
    for (int i = 0; i < 4; ++i) sketch.op("aten::log1p", us(i * 2000 + 200), us(op_us));
    const auto finding = find_by_rule(sketch.trace(), "backward-gap");
    EXPECT_TRUE(finding);
    return finding.value_or(Finding{});
  };
  const Finding known = find(900);
  ASSERT_EQ(known.brief.values.size(), 2u);
  EXPECT_DOUBLE_EQ(known.brief.values[0].real, 900.0 / 1202.0);  // until the kernel begins
  EXPECT_EQ(known.brief.values[1].text, "aten::log1p");
  EXPECT_TRUE(known.action.pattern.ends_with("do it after backward()"));
  EXPECT_TRUE(find(100).brief.values.empty());
}

// backward() fills its first gradient before the engine begins: the wait before that is part of the
// turn; the 2 us of the fill and the 3 us from its call's end to its start are not.
TEST(BackwardGapTest, TheFirstGradientIsPartOfTheTurn) {
  Sketch sketch = turn(1312);
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = i * 2000 + 1290;
    sketch.op("aten::ones_like", us(at), us(10));
    sketch.runtime("cudaLaunchKernel", us(at + 2), us(3), {.correlation = 1000 + i});
    sketch.kernel("fill", us(at + 8), us(2), {.correlation = 1000 + i});
  }
  const auto finding = find_by_rule(sketch.trace(), "backward-gap");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(1195));
  EXPECT_EQ(finding->sample_count, 3u);
}

// 300 us: what handing over to the engine takes.
TEST(BackwardGapTest, IsQuietOnAnOrdinaryTurn) {
  EXPECT_FALSE(find_by_rule(turn(60).trace(), "backward-gap"));
  EXPECT_FALSE(find_by_rule(turn(812).trace(), "backward-gap"));
}

}  // namespace
}  // namespace lanescope::explain
