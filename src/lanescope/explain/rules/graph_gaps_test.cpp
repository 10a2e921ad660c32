#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_graphs_test.h"

namespace lanescope::explain {
namespace {

// Done at 312, launched again at 1010, begun at 1012: 700 us, four times.
TEST(GraphGapsTest, SpeaksOfTheWaitBetweenReplays) {
  const auto finding = find_by_rule(replays(1000).trace(), "graph-gaps");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(2800));
  EXPECT_EQ(finding->sample_count, 4u);
}

TEST(GraphGapsTest, KnowsGraphsThatAreCapturedAgain) {
  const auto brief = [](int captures) {
    testing::Sketch sketch = replays(1000);
    for (int i = 0; i < captures; ++i)
      sketch.runtime("cudaStreamBeginCapture_v10000", us(400 + i * 1000), us(100));
    const auto finding = find_by_rule(sketch.trace(), "graph-gaps");
    EXPECT_TRUE(finding);
    return finding ? finding->brief.pattern : "";
  };
  EXPECT_TRUE(brief(4).starts_with("A CUDA graph is captured again, {} times"));
  EXPECT_EQ(brief(0), "The GPU waits for the CPU between CUDA graph replays");
}

// Each replay's launch takes longer than its work: with one per step there are no others to join it with.
TEST(GraphGapsTest, JoinsNoReplaysWhereAStepHasOne) {
  const auto action = [](int replays_a_step) {
    testing::Sketch sketch;
    std::int64_t id = 0, at = 1000;
    for (int i = 1; i <= 4; ++i) {
      sketch.annotation("ProfilerStep#" + std::to_string(i), us(at), us(400 * replays_a_step));
      for (int k = 0; k < replays_a_step; ++k, at += 400) {
        sketch.runtime("cudaGraphLaunch", us(at), us(390), {.correlation = ++id});
        sketch.kernel("gemm", us(at + 200), us(100), {.correlation = id});
      }
    }
    const auto finding = find_by_rule(sketch.trace(), "graph-gaps");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_TRUE(action(3).starts_with("Launching a graph takes longer than its work"));
  EXPECT_TRUE(action(1).starts_with("Fuse kernels before the capture"));
}

TEST(GraphGapsTest, IsQuietWhenReplaysAreQueued) {
  EXPECT_FALSE(find_by_rule(replays(100).trace(), "graph-gaps"));
}

TEST(GraphGapsTest, IsQuietOnOneReplay) {
  EXPECT_FALSE(find_by_rule(replays(1000, 1).trace(), "graph-gaps"));
}

}  // namespace
}  // namespace lanescope::explain
