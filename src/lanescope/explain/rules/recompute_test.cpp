#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

// Backward runs mm with a sequence number of its own, which is forward work; or without one.
Sketch checkpointed(bool again) {
  Sketch sketch;
  std::int64_t id = 0;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = i * 1000;
    sketch.annotation("ProfilerStep#" + std::to_string(i), us(at), us(1000));
    sketch.op("aten::mm", us(at), us(12),
              {.sequence = i * 10, .fwd_thread = 0, .input_dims = "[[8, 8], [8, 8]]"});
    sketch.runtime("cudaLaunchKernel", us(at + 5), us(5), {.correlation = ++id});
    sketch.kernel("gemm", us(at + 12), us(300), {.correlation = id});
    sketch.op("autograd::engine::evaluate_function: CheckpointFunctionBackward", us(at + 100),
              us(40), {.tid = 200, .sequence = i * 10, .fwd_thread = 1});
    testing::Fields inner{.tid = 200, .input_dims = "[[8, 8], [8, 8]]"};
    if (again) {
      inner.sequence = i * 10 + 5;
      inner.fwd_thread = 0;
    }
    sketch.op("aten::mm", us(at + 105), us(20), inner);
    sketch.runtime("cudaLaunchKernel", us(at + 110), us(5), {.tid = 200, .correlation = ++id});
    sketch.kernel("gemm", us(at + 312), us(200), {.correlation = id});
  }
  return sketch;
}

TEST(RecomputeTest, SpeaksOfForwardWorkInTheBackwardPass) {
  const auto finding = find_by_rule(checkpointed(true).trace(), "recompute");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(200));
  EXPECT_EQ(finding->sample_count, 3u);
}

// 40 of 80 GiB are in use. With more, and without the records, nobody knows whether fewer checkpoints fit.
TEST(RecomputeTest, SaysHowMuchMemoryIsLeft) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30U;
  const auto action = [](std::int64_t used) {
    Sketch sketch = checkpointed(true);
    sketch.metadata("deviceProperties",
                    R"([{"id": 0, "name": "GPU", "totalGlobalMem": 85899345920}])");
    if (used > 0)
      sketch.memory_at(us(50), 100, {.address = 1, .allocated = used / 2, .reserved = used});
    return find_by_rule(sketch.trace(), "recompute")->action;
  };
  const Sentence room = action(40 * kGiB);
  ASSERT_EQ(room.values.size(), 2u);
  EXPECT_EQ(room.values.at(0).integer, 40 * kGiB);
  EXPECT_EQ(room.values.at(1).integer, 80 * kGiB);
  EXPECT_TRUE(action(41 * kGiB).values.empty());
  EXPECT_TRUE(action(0).values.empty());
}

// The GPU does little and waits for launches: while the CPU computes again for 60 us it is idle for 58 of them, and works for 2.
TEST(RecomputeTest, CountsTheWaitsOfTheGpuMeanwhile) {
  testing::ProgramSketch program;
  std::int64_t id = 0;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k)
      program.begin_op("aten::mm", {.sequence = ++id, .fwd_thread = 0})
          .pass(18)
          .kernel("gemm", 2)
          .end();
    program.begin_op("autograd::engine::evaluate_function: CheckpointFunctionBackward",
                     {.sequence = id, .fwd_thread = 1});
    for (int k = 0; k < 3; ++k)
      program.begin_op("aten::mm", {.sequence = ++id, .fwd_thread = 0})
          .pass(17)
          .kernel("gemm", 2)
          .end();
    program.end().wait().end();
  }
  const auto finding = find_by_rule(program.trace(), "recompute");
  ASSERT_TRUE(finding);
  EXPECT_GE(finding->at_stake_ns, us(55));
  EXPECT_LE(finding->at_stake_ns, us(65));
}

// Python goes through the layers again: 30 us before the first operator of the node, and 30 us before the second one. Work of the node's
// own comes before the first operator that computes again: then only what follows counts.
TEST(RecomputeTest, CountsPythonBetweenTheOperators) {
  const auto stake = [](bool has_own_work) {
    testing::ProgramSketch program;
    std::int64_t id = 0;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < 2; ++k)
        program.begin_op("aten::mm", {.sequence = ++id, .fwd_thread = 0})
            .pass(18)
            .kernel("gemm", 2)
            .end();
      program.begin_op("autograd::engine::evaluate_function: MmBackward0",
                       {.sequence = id, .fwd_thread = 1});
      if (has_own_work) program.begin_op("aten::t").end();
      for (int k = 0; k < 2; ++k)
        program.pass(30)
            .begin_op("aten::mm", {.sequence = ++id, .fwd_thread = 0})
            .pass(17)
            .kernel("gemm", 2)
            .end();
      program.end().wait().end();
    }
    const auto finding = find_by_rule(program.trace(), "recompute");
    EXPECT_TRUE(finding);
    if (!finding) return std::int64_t{0};
    EXPECT_EQ(finding->spared_windows.size(), 3u);
    return finding->at_stake_ns;
  };
  EXPECT_GE(stake(false), us(95));
  EXPECT_LE(stake(false), us(105));
  EXPECT_GE(stake(true), us(65));
  EXPECT_LE(stake(true), us(75));
}

// Without a GPU the operators' own times count.
TEST(RecomputeTest, SpeaksOfTheCpuAlone) {
  testing::ProgramSketch program;
  std::int64_t id = 0;
  const auto mm = [&](std::int64_t length_us) {
    program.begin_op("aten::mm", {.sequence = ++id, .fwd_thread = 0}).pass(length_us - 2).end();
  };
  for (int i = 0; i < 4; ++i) {
    program.step();
    mm(100);
    program.begin_op("autograd::engine::evaluate_function: CheckpointFunctionBackward",
                     {.sequence = id, .fwd_thread = 1});
    mm(90);
    program.end().end();
  }
  const auto finding = find_by_rule(program.trace(), "recompute");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(90));
}

TEST(RecomputeTest, IsQuietOnTheBackwardPassesOwnMatmuls) {
  EXPECT_FALSE(find_by_rule(checkpointed(false).trace(), "recompute"));
}

}  // namespace
}  // namespace lanescope::explain
