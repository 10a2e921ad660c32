#include "lanescope/analysis/nested_iterations.h"

#include <gtest/gtest.h>

#include <string>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

// Draws operators of 8, one after the other, each with a launch of a kernel of its name.
class Nested {
 public:
  Nested& op(const std::string& name, std::int64_t dur_ns = 8) {
    ++id_;
    sketch_.op(name, at_, dur_ns, {});
    sketch_.runtime("cudaLaunchKernel", at_ + 1, 1, {.correlation = id_});
    sketch_.kernel("k_" + name, at_ + 3, 3, {.correlation = id_});
    at_ += dur_ns + 2;
    return *this;
  }
  // `count` operators: first_0, first_1, ...
  Nested& ops(const std::string& first, int count) {
    for (int i = 0; i < count; ++i) op(first + std::to_string(i));
    return *this;
  }
  // A step of training: six operators of the model, four more and an optimizer's.
  Nested& train() {
    ops("model_", 6).ops("loss_", 4);
    const int first = trains_++ == 0 ? first_ : 0;
    sketch_.annotation("Optimizer.step#Adam.step", at_, 18 + 10 * first);
    at_ += 2;
    return ops("moment_", first).op("adam", 14).pass(4);
  }
  // The first step of the optimizer makes so many tensors of its own.
  Nested& moments(int count) {
    first_ = count;
    return *this;
  }
  Nested& wait() {
    sketch_.runtime("cudaStreamSynchronize", at_, 5, {});
    return pass(6);
  }
  Nested& replay(int kernels) {
    ++id_;
    sketch_.runtime("cudaGraphLaunch", at_, 8, {.correlation = id_});
    for (int i = 0; i < kernels; ++i)
      sketch_.kernel("force", at_ + 10 + 5 * i, 4, {.correlation = id_});
    return pass(10);
  }
  Nested& pass(std::int64_t ns) {
    at_ += ns;
    return *this;
  }
  std::int64_t now() const { return at_; }
  std::optional<Iterations> find() {
    const Trace trace = sketch_.trace();
    return find_iterations(trace, compute_launch_links(trace));
  }

 private:
  Sketch sketch_;
  std::int64_t at_ = 0, id_ = 0;
  int trains_ = 0, first_ = 0;
};

// Four moves of 14 operators, then six steps on what was seen.
void play_and_train(Nested& program) {
  for (int move = 0; move < 4; ++move) program.ops("model_", 4).ops("world_", 10);
  for (int step = 0; step < 6; ++step) program.train();
}

TEST(NestedIterationsTest, AGameAndTheStepsOnItAreOneIteration) {
  Nested program;
  play_and_train(program);
  const std::int64_t second = program.now();
  play_and_train(program);
  const auto found = program.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kRangeEnd);
  EXPECT_EQ(found->mark, "Optimizer.step#Adam.step");
  EXPECT_EQ(found->owner, "6");
  ASSERT_EQ(found->ranges.size(), 2u);
  EXPECT_EQ(found->ranges[0].start_ns, 0);
  EXPECT_EQ(found->ranges[0].end_ns, second);
  ASSERT_EQ(found->inner.size(), 2u);
  EXPECT_EQ(found->inner[0].name, "Optimizer.step#Adam.step");
  EXPECT_EQ(found->inner[0].count, 6u);
  EXPECT_EQ(found->inner[0].time_ns, 6 * 122 - 4);  // without the pause at its end
  EXPECT_EQ(found->inner[1].name, "14 operators (model_0, model_1, ...)");
  EXPECT_EQ(found->inner[1].count, 4u);
  EXPECT_EQ(found->inner[1].time_ns, 4 * 140);
  EXPECT_EQ(found->before.count, 0u);
}

// The recording begins with the program: the first step of all makes the optimizer's moments.
TEST(NestedIterationsTest, WhatTheFirstStepOfAnOptimizerMakesHidesNoRound) {
  Nested program;
  program.moments(6);
  play_and_train(program);
  play_and_train(program);
  const auto found = program.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->owner, "6");
  EXPECT_EQ(found->ranges.size(), 2u);
}

// With one round, nothing shows that the game comes again: steps are iterations, and the game is told apart.
TEST(NestedIterationsTest, OneRoundOfALongerLoopIsToldBesideItsSteps) {
  Nested program;
  play_and_train(program);
  const auto found = program.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->owner, "");
  EXPECT_EQ(found->ranges.size(), 5u);
  EXPECT_EQ(found->before.count, 4u);
  EXPECT_EQ(found->before.name, "14 operators (model_0, model_1, ...)");
  EXPECT_FALSE(found->before_comes_again);
}

// Weights that are made before the first step are no phase of a loop: nothing of it comes again in a step.
TEST(NestedIterationsTest, ALoopOfOtherOperatorsBeforeTheStepsIsNoPhase) {
  Nested program;
  for (int i = 0; i < 8; ++i) program.ops("init_", 8);
  for (int i = 0; i < 6; ++i) program.train();
  const auto found = program.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ranges.size(), 5u);
  EXPECT_EQ(found->before.count, 0u);
}

// After each sixth step the model is evaluated on two batches. A step is the iteration, and the longer loop is told.
TEST(NestedIterationsTest, StepsWithAnEvaluationAfterSomeRemainIterations) {
  Nested program;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int i = 0; i < 6; ++i) program.train();
    for (int i = 0; i < 2; ++i) program.ops("model_", 6).ops("score_", 2);
  }
  const auto found = program.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kRangeEnd);
  EXPECT_EQ(found->owner, "");
  EXPECT_EQ(found->ranges.size(), 17u);
  EXPECT_EQ(found->of_outer, 6u);
  EXPECT_EQ(found->outer_ns, 6 * 122 + 160);
}

// Gradients of five tiles, and then one step; two rounds, after other work.
TEST(NestedIterationsTest, TilesBeforeOneStepAreALoopInsideOfIt) {
  Nested program;
  program.ops("load_", 7);
  const std::int64_t first = program.now();
  for (int round = 0; round < 2; ++round) {
    for (int tile = 0; tile < 5; ++tile) program.ops("tile_", 9).op("aten::ones_like").wait();
    program.train();
  }
  const auto found = program.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kRangeEnd);
  EXPECT_EQ(found->owner, "");
  ASSERT_EQ(found->ranges.size(), 2u);
  EXPECT_EQ(found->ranges[0].start_ns, first);
  ASSERT_EQ(found->inner.size(), 1u);
  EXPECT_EQ(found->inner[0].count, 5u);
  EXPECT_TRUE(found->inner[0].runs_backward);
}

TEST(NestedIterationsTest, RoundsOfTheOnlyStepAreToldToBeSuch) {
  Nested program;
  for (int tile = 0; tile < 6; ++tile) program.ops("tile_", 9).op("aten::ones_like").wait();
  program.train();
  const auto found = program.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kWait);
  EXPECT_EQ(found->only_step, "Optimizer.step#Adam.step");
}

// Twelve replays of one graph in each of three frames, and a picture of ten operators.
TEST(NestedIterationsTest, ReplaysWithinAFrameAreALoopInsideOfIt) {
  Nested program;
  for (int frame = 0; frame < 3; ++frame) {
    for (int i = 0; i < 12; ++i) program.replay(20);
    program.ops("draw_", 10).wait();
  }
  const auto found = program.find();
  ASSERT_TRUE(found);
  EXPECT_LE(found->ranges.size(), 3u);
  EXPECT_GE(found->ranges.size(), 2u);
}

// Words of a request are a loop inside of it, though something precedes the first request.
TEST(NestedIterationsTest, WordsAreALoopInsideOfRequests) {
  Nested program;
  program.ops("load_", 3);
  for (int request = 0; request < 3; ++request) {
    program.ops("prompt_", 9);
    for (int word = 0; word < 8; ++word) program.ops("word_", 9).wait();
  }
  const auto found = program.find();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->ranges.size(), 3u);
  EXPECT_EQ(found->ranges[0].start_ns, 30);
  ASSERT_EQ(found->inner.size(), 1u);
  EXPECT_EQ(found->inner[0].count, 8u);
}

// A round ends with b, and begins with rounds of a, b: the first one lacks the b before it, by which the others seem to begin with b, a.
TEST(NestedIterationsTest, TheFirstRoundOfALoopOfLoopsCounts) {
  Nested program;
  for (int request = 0; request < 3; ++request) {
    program.ops("prompt_", 9);
    for (int round = 0; round < 6; ++round) {
      for (int inner = 0; inner < 4; ++inner) program.op("a").op("b");
      program.op("m").op("n").op("b").wait();
    }
  }
  const auto found = program.find();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->ranges.size(), 3u);
  ASSERT_EQ(found->inner.size(), 1u);
  EXPECT_EQ(found->inner[0].name, "11 operators (a, b, ...)");
  EXPECT_EQ(found->inner[0].count, 6u);
  EXPECT_EQ(found->inner[0].second_ns - found->inner[0].start_ns, 116);
  EXPECT_EQ(found->inner[0].time_ns, 6 * 116);
}

}  // namespace
}  // namespace lanescope::analysis
