#include "lanescope/analysis/range_iterations.h"

#include <gtest/gtest.h>

#include <string>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

// Draws ranges one after the other; each launches `launches` kernels of its own name at its begin.
class NamedProgram {
 public:
  NamedProgram& range(const std::string& name, std::int64_t dur_ns, int launches = 4) {
    sketch_.annotation(name, at_ns_, dur_ns);
    return work(name, launches).pause(dur_ns);
  }
  NamedProgram& pause(std::int64_t dur_ns) {
    at_ns_ += dur_ns;
    return *this;
  }
  // An operator of 10 with one kernel of this name.
  NamedProgram& copy(const std::string& kernel) {
    sketch_.op("aten::to", at_ns_, 10);
    return work(kernel, 1);
  }
  NamedProgram& work(const std::string& kernel, int launches) {
    for (int i = 0; i < launches; ++i) {
      ++id_;
      sketch_.runtime("cudaLaunchKernel", at_ns_ + 10 * i + 1, 1, {.correlation = id_});
      sketch_.kernel(kernel, at_ns_ + 10 * i + 3, 3, {.correlation = id_});
    }
    return *this;
  }
  // A range from `start_ns` until now.
  NamedProgram& around(const std::string& name, std::int64_t start_ns) {
    sketch_.annotation(name, start_ns, at_ns_ - start_ns);
    return *this;
  }
  // Inside of the range that comes next.
  NamedProgram& optimizer_step(std::int64_t after_ns) {
    sketch_.annotation("Optimizer.step#Adam.step", at_ns_ + after_ns, 2);
    return *this;
  }
  std::optional<Iterations> find() {
    const Trace trace = sketch_.trace();
    return find_iterations(trace, compute_launch_links(trace));
  }

 private:
  Sketch sketch_;
  std::int64_t id_ = 0, at_ns_ = 0;
};

bool is_by_ranges(const std::optional<Iterations>& found) {
  return found && found->kind == IterationMark::kRangeStart;
}

// Twice: 400 of play, then 100 with four steps of an optimizer.
TEST(RangeIterationsTest, RangesThatAlternateAreOneIteration) {
  NamedProgram program;
  for (int i = 0; i < 2; ++i) {
    program.range("rollout", 400);
    for (int k = 0; k < 4; ++k) program.optimizer_step(20 * k + 15);
    program.range("update", 100);
  }
  const auto found = program.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kRangeStart);
  EXPECT_EQ(found->mark, "rollout");
  ASSERT_EQ(found->ranges.size(), 2u);
  EXPECT_EQ(found->ranges[0].start_ns, 0);
  EXPECT_EQ(found->ranges[0].end_ns, 500);
  EXPECT_EQ(found->ranges[1].end_ns, 1000);
}

// The same with a range of another name in one of them.
TEST(RangeIterationsTest, RangesWithoutARepeatedOrderAreNoIterations) {
  NamedProgram program;
  for (int i = 0; i < 2; ++i) {
    program.range("rollout", 400);
    if (i == 1) program.range("evaluate", 100);
    program.range("update", 100);
  }
  EXPECT_FALSE(program.find());
}

TEST(RangeIterationsTest, RangesThatLeaveOutMuchOfTheTimeAreNoIterations) {
  const auto draw = [](std::int64_t pause_ns) {
    NamedProgram program;
    for (int i = 0; i < 2; ++i) program.range("rollout", 400).range("update", 100).pause(pause_ns);
    return program.find();
  };
  EXPECT_TRUE(draw(50));
  EXPECT_FALSE(draw(150));
}

TEST(RangeIterationsTest, RangesThatLeaveOutMuchOfTheWorkAreNoIterations) {
  const auto draw = [](int launches) {
    NamedProgram program;
    program.work("load", launches).pause(100);
    for (int i = 0; i < 2; ++i) program.range("rollout", 400, 10).range("update", 100, 10);
    return program.find();
  };
  EXPECT_TRUE(draw(4));
  EXPECT_FALSE(draw(9));
}

// Four micro batches for each step of an optimizer: outside of them, the step is a part of the word. Inside of the fourth, it is
// a reason to doubt the ranges.
TEST(RangeIterationsTest, MicroBatchesAreNoIterations) {
  const auto draw = [](bool steps_inside) {
    NamedProgram program;
    for (int i = 0; i < 4; ++i) {
      for (int k = 0; k < 4; ++k) {
        if (steps_inside && k == 3) program.optimizer_step(45);
        program.range("micro batch", 100);
      }
      if (!steps_inside) program.range("Optimizer.step#Adam.step", 20);
    }
    return program.find();
  };
  const auto outside = draw(false);
  ASSERT_TRUE(is_by_ranges(outside));
  ASSERT_EQ(outside->ranges.size(), 4u);
  EXPECT_EQ(outside->ranges[0].end_ns, 420);
  EXPECT_FALSE(is_by_ranges(draw(true)));
}

TEST(RangeIterationsTest, ARangeAroundAllOthersIsOpened) {
  NamedProgram program;
  for (int i = 0; i < 2; ++i) program.range("rollout", 400).range("update", 100);
  const auto found = program.around("train", 0).find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->mark, "rollout");
}

// The recording ends after a third rollout.
TEST(RangeIterationsTest, AWordThatTheRecordingCutsIsNoIteration) {
  NamedProgram program;
  for (int i = 0; i < 2; ++i) program.range("rollout", 400).range("update", 100);
  const auto found = program.range("rollout", 400).find();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->ranges.size(), 2u);
  EXPECT_EQ(found->ranges[1].end_ns, 1000);
}

// Each of two rounds copies a batch, encodes it, and reads a result.
TEST(RangeIterationsTest, WorkBetweenTwoWordsBelongsToTheOneThatHasIt) {
  const auto draw = [](const char* before, const char* after) {
    NamedProgram program;
    for (int i = 0; i < 2; ++i) {
      program.copy(i == 0 ? before : "upload").pause(20);
      program.range("encode", 400, 10).range("score", 100, 10);
      program.copy(i == 1 ? after : "download").pause(20);
    }
    return program.find();
  };
  const auto found = draw("upload", "download");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->mark, "encode");
  ASSERT_EQ(found->ranges.size(), 2u);
  EXPECT_EQ(found->ranges[0].start_ns, 0);
  EXPECT_EQ(found->ranges[0].end_ns, 540);   // the second upload's start
  EXPECT_EQ(found->ranges[1].end_ns, 1070);  // the second download's end
  // Other work before the first round, or after the last one, is not of a round.
  const auto start_up = draw("load", "download");
  ASSERT_TRUE(start_up);
  EXPECT_EQ(start_up->ranges[0].start_ns, 20);
  const auto end = draw("upload", "save");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->ranges[1].end_ns, 1060);  // the range's end
}

// Two passes of three layers, each with attention and a range around its experts; then the head. Not so without a head, or where
// next to nothing lies between two ranges, as between two tokens.
TEST(RangeIterationsTest, ARangeInEachLayerIsAPartOfAPass) {
  const auto draw = [](int attention, int head) {
    NamedProgram program;
    for (int pass = 0; pass < 2; ++pass) {
      for (int layer = 0; layer < 3; ++layer)
        program.work("attention kernel", attention).pause(50).range("moe", 100, 10);
      program.work("head", head).pause(20);
    }
    return program.find();
  };
  const auto found = draw(4, 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->mark, "round of 3 moe");
  ASSERT_EQ(found->ranges.size(), 2u);
  EXPECT_EQ(found->ranges[0].end_ns - found->ranges[0].start_ns, 470);
  const auto tokens = draw(1, 4);
  EXPECT_TRUE(!tokens || tokens->mark == "moe");
  const auto no_head = draw(4, 0);
  EXPECT_TRUE(!no_head || no_head->mark == "moe");
}

TEST(RangeIterationsTest, PartsOfAModelAreNoIterations) {
  NamedProgram program;
  for (int i = 0; i < 2; ++i) program.range("attention", 400).range("mlp", 100);
  EXPECT_FALSE(program.find());
}

}  // namespace
}  // namespace lanescope::analysis
