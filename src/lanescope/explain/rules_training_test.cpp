// Rules about the training loop, on drawn programs. Microseconds; the first step is start-up.
#include <gmock/gmock.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;
using testing::Sketch;
using Work = ProgramSketch::Work;

// Forty parameters, two kernels of 1 us each.
ProgramSketch optimizer_of(std::string_view first, std::string_view second) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin("Optimizer.step#SGD.step");
    for (int k = 0; k < 40; ++k)
      program.launch({.name = kElementwise, .us = 1, .op = first})
          .launch({.name = kElementwise, .us = 1, .op = second});
    program.end().end();
  }
  return program;
}

// Each of 80 launches finds the GPU waiting for 7 us; of 80 us of kernels one pass, 40 us, stays.
TEST(OptimizerLoopTest, SpeaksOfOneKernelAParameter) {
  const auto finding =
      find_by_rule(optimizer_of("aten::mul_", "aten::add_").trace(), "optimizer-loop");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 80);
  EXPECT_EQ(finding->verdict.values[2].integer, us(560));
  EXPECT_EQ(finding->at_stake_ns, us(560 + 80 - 40));
  EXPECT_EQ(finding->arithmetic[0].values[2].integer, 40);  // tensors
}

// 80 kernels of 20 us: the launches, 10 us each, stay ahead of the GPU.
TEST(OptimizerLoopTest, SaysNothingOfWaitsWhereThereAreNone) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 2000}).begin("Optimizer.step#SGD.step");
    for (int k = 0; k < 40; ++k)
      program.launch({.name = kElementwise, .us = 20, .op = "aten::mul_"})
          .launch({.name = kElementwise, .us = 20, .op = "aten::add_"});
    program.end().end();
  }
  const auto finding = find_by_rule(program.trace(), "optimizer-loop");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(1600 - 800));
  EXPECT_EQ(finding->verdict.values.size(), 2u);
  EXPECT_THAT(finding->verdict.pattern, ::testing::Not(::testing::HasSubstr("waits")));
  EXPECT_THAT(finding->arithmetic.at(0).pattern, ::testing::StartsWith("kernels {}"));
}

TEST(OptimizerLoopTest, IsQuietOnForeachAndFused) {
  EXPECT_FALSE(find_by_rule(optimizer_of("aten::_foreach_mul_", "aten::_fused_adam_").trace(),
                            "optimizer-loop"));
}

ProgramSketch with_optimizer(std::int64_t optimizer_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 300}).begin("Optimizer.step#AdamW.step");
    program.launch({.us = optimizer_us, .op = "aten::_fused_adamw_"}).end().end();
  }
  return program;
}

TEST(OptimizerShareTest, SpeaksFromFifteenPercentOfTheBusyTime) {
  const auto finding = find_by_rule(with_optimizer(100).trace(), "optimizer-share");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_EQ(finding->at_stake_ns, us(100));
  EXPECT_NEAR(finding->verdict.values[0].real, 0.25, 1e-9);
  EXPECT_FALSE(find_by_rule(with_optimizer(45).trace(), "optimizer-share"));
}

TEST(OptimizerShareTest, NeedsTheOptimizersRangeInATrainingTrace) {
  Sketch sketch;
  sketch.op("autograd::engine::evaluate_function: MmBackward0", us(0), us(20), {.tid = 200});
  sketch.runtime("cudaLaunchKernel", us(5), us(5), {.tid = 200, .correlation = 1});
  sketch.kernel("gemm", us(12), us(100), {.correlation = 1});
  EXPECT_EQ(state_of_rule(sketch.trace(), "optimizer-share"), RuleRun::State::kNotChecked);
}

// Ten fills and ten additions of 5 us; the queue is full, so nobody waits for the CPU.
ProgramSketch zero_grad(bool fills) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 500}).begin("Optimizer.zero_grad#SGD.zero_grad");
    for (int k = 0; k < 10 && fills; ++k)
      program.launch({.name = "fill", .us = 5, .op = "aten::zero_"});
    program.end();
    for (int k = 0; k < 10; ++k)
      program.begin("torch::autograd::AccumulateGrad")
          .pass(1)
          .launch({.name = kElementwise, .us = 5, .op = "aten::add_"})
          .end();
    program.end();
  }
  return program;
}

TEST(ZeroGradFillsTest, CountsTheFillsAndTheAdditionsOntoZeros) {
  const auto finding = find_by_rule(zero_grad(true).trace(), "zero-grad-fills");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 10);
  EXPECT_EQ(finding->verdict.values[2].integer, 10);
  EXPECT_EQ(finding->at_stake_ns, us(100));
}

TEST(ZeroGradFillsTest, IsQuietWhenGradientsAreSetToNone) {
  EXPECT_FALSE(find_by_rule(zero_grad(false).trace(), "zero-grad-fills"));
}

// Forward on one thread, backward on the engine's. The forward kernel ends 112 us after the step
// began; the backward launch ends `late_us` after the step began and its kernel begins 2 us later.
Sketch turn(std::int64_t late_us) {
  Sketch sketch;
  std::int64_t id = 0;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = i * 2000;
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
  const auto finding = find_by_rule(turn(812).trace(), "backward-gap");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(700));  // [112, 812) of each step
  EXPECT_EQ(finding->sample_count, 3u);
}

// backward() fills its first gradient before the engine begins: the wait before that is part of the
// turn; the 2 us of the fill and the 3 us from its call's end to its start are not.
TEST(BackwardGapTest, TheFirstGradientIsPartOfTheTurn) {
  Sketch sketch = turn(812);
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = i * 2000 + 790;
    sketch.op("aten::ones_like", us(at), us(10));
    sketch.runtime("cudaLaunchKernel", us(at + 2), us(3), {.correlation = 1000 + i});
    sketch.kernel("fill", us(at + 8), us(2), {.correlation = 1000 + i});
  }
  const auto finding = find_by_rule(sketch.trace(), "backward-gap");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(695));
  EXPECT_EQ(finding->sample_count, 3u);
}

// 300 us: what handing over to the engine takes.
TEST(BackwardGapTest, IsQuietOnAnOrdinaryTurn) {
  EXPECT_FALSE(find_by_rule(turn(60).trace(), "backward-gap"));
  EXPECT_FALSE(find_by_rule(turn(412).trace(), "backward-gap"));
}

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

TEST(RecomputeTest, IsQuietOnTheBackwardPassesOwnMatmuls) {
  EXPECT_FALSE(find_by_rule(checkpointed(false).trace(), "recompute"));
}

// 300 us of matmul, 60 of log_softmax over `classes`, 40 of nll_loss.
ProgramSketch loss_over(std::string_view dims, std::string_view last = "aten::nll_loss_forward") {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 300});
    program.launch({.name = "softmax", .us = 60, .op = "aten::_log_softmax", .dims = dims});
    program.launch({.name = "nll", .us = 40, .op = last, .dims = dims});
    program.end();
  }
  return program;
}

TEST(LogitsLossTest, SpeaksOfALargeVocabulary) {
  const auto finding = find_by_rule(loss_over("[[512, 50257], [512]]").trace(), "logits-loss");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 50257);
  EXPECT_EQ(finding->at_stake_ns, us(100));
}

TEST(LogitsLossTest, IsQuietOnASoftmaxThatNoLossFollows) {
  EXPECT_FALSE(find_by_rule(loss_over("[[512, 50257]]", "aten::mul").trace(), "logits-loss"));
}

TEST(LogitsLossTest, IsQuietOnFewClassesAndNeedsShapes) {
  EXPECT_FALSE(find_by_rule(loss_over("[[512, 1000], [512]]").trace(), "logits-loss"));
  EXPECT_EQ(state_of_rule(loss_over("").trace(), "logits-loss"), RuleRun::State::kNotChecked);
}

// The scaler's check, .item() and then 100 us of Python before the optimizer.
ProgramSketch scaled(std::string_view asked) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 300});
    program.launch({.us = 10, .op = asked}).wait("aten::item").pass(100);
    program.begin("Optimizer.step#SGD.step").launch({.us = 50}).end().end();
  }
  return program;
}

// The wait is over 2 us after the GPU is done, the next launch ends 1 + 100 + 7 us later: 110 us
// idle, less than the wait before it took.
TEST(ScalerSyncTest, SpeaksOfTheWaitBetweenCheckAndOptimizer) {
  const auto finding = find_by_rule(
      scaled("aten::_amp_foreach_non_finite_check_and_unscale_").trace(), "scaler-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].text, "The gradient scaler");
  EXPECT_EQ(finding->at_stake_ns, us(110));
}

TEST(ScalerSyncTest, SpeaksOfClippingThatAsksForTheNorm) {
  const auto finding = find_by_rule(scaled("aten::_foreach_norm").trace(), "scaler-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].text, "Code that reads a gradient norm");
}

// A norm in the forward pass: the wait after it is the loss's, and the backward pass lies between.
TEST(ScalerSyncTest, IsQuietOnANormOfTheForwardPass) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 300});
    program.launch({.us = 10, .op = "aten::linalg_vector_norm"}).wait("aten::item").pass(100);
    program.begin("autograd::engine::evaluate_function: MmBackward0").pass(1).launch({}).end();
    program.begin("Optimizer.step#SGD.step").launch({.us = 50}).end().end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "scaler-sync"));
}

TEST(ScalerSyncTest, IsQuietOnOtherWaits) {
  EXPECT_FALSE(find_by_rule(scaled("aten::mm").trace(), "scaler-sync"));
}

// Two epochs of five batches: a wait of 100 us each; then one without a batch (3 ms), `start_us` of
// nothing, and the first wait of the next epoch (2 ms).
ProgramSketch epochs(std::int64_t start_us, bool evaluates, std::string_view iterator) {
  const std::string wait = "enumerate(DataLoader)#" + std::string(iterator) + ".__next__";
  ProgramSketch program;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int i = 0; i < 5; ++i) {
      program.step().begin(wait).pass(epoch == 1 && i == 0 ? 2000 : 100).end();
      program.launch({.us = 50}).end();
    }
    program.begin(wait).pass(3000).end();
    if (evaluates) program.launch({.us = 50});
    program.pass(start_us);
  }
  return program;
}
constexpr char kWorkers[] = "_MultiProcessingDataLoaderIter";

// 3 + 10 + 2 ms; the last kernel of the epoch runs 9 us into it and 50 us long: 49 of them still
// left after the wait has begun.
TEST(WorkerRestartTest, SpeaksOfTwoWaitsWithNothingBetween) {
  const auto finding = find_by_rule(epochs(10'000, false, kWorkers).trace(), "worker-restart");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 1);
  EXPECT_EQ(finding->verdict.values[1].integer, us(15'000));
  EXPECT_EQ(finding->at_stake_ns, us(15'000 - 49));
}

TEST(WorkerRestartTest, IsQuietWhenWorkersStayOrThereAreNone) {
  EXPECT_FALSE(find_by_rule(epochs(10'000, true, kWorkers).trace(), "worker-restart"));
  EXPECT_FALSE(find_by_rule(epochs(10'000, false, "_SingleProcessDataLoaderIter").trace(),
                            "worker-restart"));
}

}  // namespace
}  // namespace lanescope::explain
