#include "lanescope/analysis/training_phases.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

Phase phase_of(const Trace& trace, std::string_view name, const NestingOptions& options = {}) {
  const auto phases = compute_training_phases(trace, compute_launch_links(trace),
                                              compute_slice_nesting(trace, options));
  for (std::uint32_t i = 0; i < phases.size(); ++i)
    if (trace.name(SliceId{i}) == name) return phases[i];
  ADD_FAILURE() << "no slice " << name;
  return Phase::kOther;
}

TEST(TrainingPhasesTest, TheOutermostRangeDecidesForAllInsideAndForTheirKernels) {
  testing::Sketch sketch;
  sketch.op("aten::mm", 0, 50).runtime("cudaLaunchKernel", 10, 5, {.correlation = 1});
  sketch.op("autograd::engine::evaluate_function: MmBackward0", 100, 50);
  sketch.op("MmBackward0", 110, 30).op("aten::t", 115, 5);
  sketch.annotation("Optimizer.step#SGD.step", 200, 50).op("aten::add_", 210, 20);
  sketch.runtime("cuLaunchKernel", 215, 5, {.correlation = 2});
  sketch.annotation("Optimizer.zero_grad#SGD.zero_grad", 300, 50).op("aten::zero_", 310, 20);
  sketch.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 400, 50);
  sketch.op("aten::stack", 410, 20);
  sketch.kernel("forward_kernel", 500, 10, {.correlation = 1});
  sketch.kernel("step_kernel", 600, 10, {.correlation = 2});
  sketch.kernel("nobody's", 700, 10);
  const Trace trace = sketch.trace();
  EXPECT_EQ(phase_of(trace, "aten::mm"), Phase::kOther);
  EXPECT_EQ(phase_of(trace, "aten::t"), Phase::kBackward);
  EXPECT_EQ(phase_of(trace, "aten::add_"), Phase::kOptimizer);
  EXPECT_EQ(phase_of(trace, "aten::zero_"), Phase::kZeroGrad);
  EXPECT_EQ(phase_of(trace, "aten::stack"), Phase::kLoader);
  EXPECT_EQ(phase_of(trace, "forward_kernel"), Phase::kOther);
  EXPECT_EQ(phase_of(trace, "step_kernel"), Phase::kOptimizer);
  EXPECT_EQ(phase_of(trace, "nobody's"), Phase::kOther);
}

// torch 1.8 draws no engine ranges; an aten operator may have "backward" in its name and is none.
TEST(TrainingPhasesTest, NodesOfOldTracesAreToldByTheirNames) {
  testing::Sketch sketch;
  sketch.op("MulBackward0", 0, 10).op("torch::autograd::CopyBackwards", 20, 10);
  sketch.op("aten::convolution_backward", 40, 10).op("BackwardHook", 60, 10);
  const Trace trace = sketch.trace();
  EXPECT_EQ(phase_of(trace, "MulBackward0"), Phase::kBackward);
  EXPECT_EQ(phase_of(trace, "torch::autograd::CopyBackwards"), Phase::kBackward);
  EXPECT_EQ(phase_of(trace, "aten::convolution_backward"), Phase::kOther);
  EXPECT_EQ(phase_of(trace, "BackwardHook"), Phase::kOther);
}

// Optimizer.step(closure): [200, 300) holds forward, backward until 270 and then the update.
TEST(TrainingPhasesTest, AClosureOfTheOptimizerHoldsForwardAndBackward) {
  testing::Sketch sketch;
  sketch.annotation("Optimizer.step#SGD.step", 200, 100);
  sketch.op("aten::linear", 210, 20).op("aten::addmm", 212, 10);
  sketch.op("autograd::engine::evaluate_function: AddmmBackward0", 240, 30).op("aten::mm", 245, 5);
  sketch.op("aten::add_", 280, 10);
  sketch.annotation("Optimizer.step#Adam.step", 400, 50).op("aten::div_", 410, 20);
  const Trace trace = sketch.trace();
  EXPECT_EQ(phase_of(trace, "Optimizer.step#SGD.step"), Phase::kOther);
  EXPECT_EQ(phase_of(trace, "aten::linear"), Phase::kOther);
  EXPECT_EQ(phase_of(trace, "aten::addmm"), Phase::kOther);
  EXPECT_EQ(phase_of(trace, "aten::mm"), Phase::kBackward);
  EXPECT_EQ(phase_of(trace, "aten::add_"), Phase::kOptimizer);
  EXPECT_EQ(phase_of(trace, "aten::div_"), Phase::kOptimizer);
}

// The same with stacks: the frame of the closure is between the range and its operators.
TEST(TrainingPhasesTest, AClosureWithPythonFramesIsNoOptimizerEither) {
  testing::Sketch sketch;
  sketch.annotation("Optimizer.step#SGD.step", 200, 100);
  sketch.slice("python_function", "trainer.py(9): closure", 205, 70);
  sketch.op("aten::linear", 210, 20);
  sketch.op("autograd::engine::evaluate_function: AddmmBackward0", 240, 30);
  sketch.slice("python_function", "sgd.py(7): update", 276, 20).op("aten::add_", 280, 10);
  const Trace trace = sketch.trace();
  const auto phase = [&](std::string_view name) {
    return phase_of(trace, name, {.python_frames = true});
  };
  EXPECT_EQ(phase("trainer.py(9): closure"), Phase::kOther);
  EXPECT_EQ(phase("aten::linear"), Phase::kOther);
  EXPECT_EQ(phase("autograd::engine::evaluate_function: AddmmBackward0"), Phase::kBackward);
  EXPECT_EQ(phase("aten::add_"), Phase::kOptimizer);
}

// LBFGS.step(closure) on a GPU: the backward pass runs on thread 200. Two closures, [210, 270) and [310, 370), and the optimizer's own
// work after each. Operators of a closure have sequence numbers. A loss is read after the pass.
TEST(TrainingPhasesTest, ClosuresWithABackwardPassOnAnotherThreadAreNotTheOptimizers) {
  testing::Sketch sketch;
  sketch.annotation("Optimizer.step#LBFGS.step", 200, 200);
  sketch.op("aten::clamp_", 202, 4);
  sketch.annotation("Optimizer.zero_grad#LBFGS.zero_grad", 210, 5);
  sketch.op("aten::linear", 220, 20, {.sequence = 1}).op("aten::addmm", 222, 10, {.sequence = 1});
  sketch.runtime("cudaLaunchKernel", 225, 2, {.correlation = 1});
  sketch.op("autograd::engine::evaluate_function: AddmmBackward0", 245, 25, {.tid = 200});
  sketch.op("aten::mm", 250, 5, {.tid = 200});
  sketch.op("aten::item", 272, 5, {.sequence = 2});
  sketch.op("aten::_local_scalar_dense", 273, 3, {.sequence = 2});
  sketch.op("aten::dot", 280, 10);
  sketch.runtime("cudaLaunchKernel", 283, 2, {.correlation = 2});
  sketch.op("aten::conv2d", 310, 20, {.sequence = 2});
  sketch.op("autograd::engine::evaluate_function: ConvolutionBackward0", 340, 30, {.tid = 200});
  sketch.op("aten::add_", 380, 10);
  sketch.kernel("forward_kernel", 500, 10, {.correlation = 1});
  sketch.kernel("dot_kernel", 520, 10, {.correlation = 2});
  const Trace trace = sketch.trace();
  EXPECT_EQ(phase_of(trace, "Optimizer.zero_grad#LBFGS.zero_grad"), Phase::kZeroGrad);
  EXPECT_EQ(phase_of(trace, "aten::linear"), Phase::kOther);
  EXPECT_EQ(phase_of(trace, "aten::addmm"), Phase::kOther);
  EXPECT_EQ(phase_of(trace, "forward_kernel"), Phase::kOther);
  EXPECT_EQ(phase_of(trace, "aten::mm"), Phase::kBackward);
  EXPECT_EQ(phase_of(trace, "aten::dot"), Phase::kOptimizer);
  EXPECT_EQ(phase_of(trace, "dot_kernel"), Phase::kOptimizer);
  EXPECT_EQ(phase_of(trace, "aten::conv2d"), Phase::kOther);
  EXPECT_EQ(phase_of(trace, "aten::add_"), Phase::kOptimizer);
}

// Near miss: another thread's backward pass runs at the same time. Without gradients the optimizer's own operators have no sequence number.
TEST(TrainingPhasesTest, TheBackwardPassOfAnotherLoopIsNoClosure) {
  testing::Sketch sketch;
  sketch.annotation("Optimizer.step#Adam.step", 200, 100).op("aten::mul_", 210, 20);
  sketch.op("autograd::engine::evaluate_function: AddmmBackward0", 240, 30, {.tid = 200});
  sketch.op("aten::addcdiv_", 280, 10);
  const Trace trace = sketch.trace();
  EXPECT_EQ(phase_of(trace, "Optimizer.step#Adam.step"), Phase::kOptimizer);
  EXPECT_EQ(phase_of(trace, "aten::mul_"), Phase::kOptimizer);
  EXPECT_EQ(phase_of(trace, "aten::addcdiv_"), Phase::kOptimizer);
}

}  // namespace
}  // namespace lanescope::analysis
