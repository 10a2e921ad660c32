#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

constexpr char kJudge[] = "[8, 8]", kMaker[] = "[16, 16]";

struct DrawnGan {
  bool is_detached = false;
  bool is_accumulated = false;  // the second pass adds to the gradients of the first
  bool is_read = false;         // the program copies the gradients between the passes
};

class PassPen {
 public:
  explicit PassPen(ProgramSketch& program) : p_(program) {}

  // Three layers of one part, forward.
  void forward() {
    for (int i = 0; i < 3; ++i) p_.begin_op("aten::linear", {.sequence = number_++}).pass(8).end();
  }
  // The newest node first; after each, 100 us long, the gradient of a weight, 10 us.
  void backward(int layers, const char* shape, bool adds) {
    for (int i = 0; i < layers; ++i) {
      p_.begin_op("autograd::engine::evaluate_function: AddmmBackward0",
                  {.sequence = number_ - 1 - made_++, .fwd_thread = 1});
      p_.pass(98).end();
      p_.begin_op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
      const std::string dims = shape ? std::string("[") + shape + "]" : "";
      p_.begin_op("torch::autograd::AccumulateGrad", {.input_dims = dims});
      if (adds)
        p_.begin_op("aten::add_").pass(4).end().end().end();
      else
        p_.pass(6).end().end();
    }
  }
  void start() { made_ = 0; }

 private:
  ProgramSketch& p_;
  std::int64_t number_ = 0, made_ = 0;
};

void draw_update(ProgramSketch& p, const char* shape) {
  p.begin("Optimizer.step#SGD.step").pass(1);
  const std::string list = std::string(shape) + ", " + shape + ", " + shape;
  p.begin_op("aten::_foreach_add_", {.input_dims = "[[" + list + "], []]"}).pass(10).end().end();
}

// Each step: the judge's loss goes back through the judge and, if it is not detached, through the maker; its
// optimizer; then the maker's loss goes back through both, and the other optimizer.
Trace draw_gan(const DrawnGan& drawn) {
  ProgramSketch program;
  PassPen passes(program);
  program.steps(4, [&](ProgramSketch& p) {
    passes.forward();
    passes.forward();
    passes.start();
    passes.backward(3, kJudge, false);
    if (!drawn.is_detached) passes.backward(3, kMaker, false);
    draw_update(p, kJudge);
    if (drawn.is_read)
      for (int i = 0; i < 3; ++i)
        p.begin_op("aten::clone", {.input_dims = std::string("[") + kMaker + "]"}).pass(4).end();
    passes.forward();
    passes.forward();
    passes.start();
    passes.backward(3, kJudge, false);
    passes.backward(3, kMaker, drawn.is_accumulated);
    draw_update(p, kMaker);
  });
  return program.trace();
}

// Three nodes of 100 us and their gradients, 10 us each. The gradients of the judge in the second pass are dropped, too, but
// the pass goes on to gradients that are used.
TEST(DiscardedGradientsTest, TellsOfThePartAfterTheLastUsedGradient) {
  const auto finding = find_by_rule(draw_gan({}), "discarded-gradients");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 3);
  EXPECT_EQ(finding->at_stake_ns, us(3 * 110));
  EXPECT_NE(finding->action.pattern.find("detach()"), std::string::npos);
}

TEST(DiscardedGradientsTest, IsQuietWhereThePassStopsBefore) {
  EXPECT_FALSE(find_by_rule(draw_gan({.is_detached = true}), "discarded-gradients"));
}

// Without shapes: in each step the judge's loss goes back `judged` times, then the maker's, each with zero_grad() and step().
struct DrawnClearing {
  int judged = 1;
  bool is_detached = false;
  bool clears_after_step = false;  // zero_grad() right after step(), instead of before backward()
  bool fills_zeros = false;
};

Trace draw_clearing(const DrawnClearing& drawn) {
  ProgramSketch program;
  PassPen passes(program);
  const auto clear = [&] {
    program.begin("Optimizer.zero_grad#SGD.zero_grad");
    if (drawn.fills_zeros)
      program.pass(1).cpu_op("aten::zero_", 3).pass(1).end();
    else
      program.pass(3).end();
  };
  const auto update = [&](bool judge_is_new, bool has_maker) {
    passes.forward();
    passes.forward();
    if (!drawn.clears_after_step) clear();
    passes.start();
    passes.backward(3, nullptr, !judge_is_new);
    if (has_maker) passes.backward(3, nullptr, judge_is_new);
    program.begin("Optimizer.step#SGD.step").cpu_op("aten::_foreach_add_", 10).end();
    if (drawn.clears_after_step) clear();
  };
  program.steps(4, [&](ProgramSketch&) {
    for (int i = 0; i < drawn.judged; ++i) update(!drawn.clears_after_step, !drawn.is_detached);
    update(drawn.clears_after_step, true);
  });
  return program.trace();
}

TEST(DiscardedGradientsTest, KnowsDroppedGradientsByWhatZeroGradClears) {
  const auto once = find_by_rule(draw_clearing({}), "discarded-gradients");
  ASSERT_TRUE(once);
  EXPECT_EQ(once->verdict.values[0].integer, 3);
  EXPECT_EQ(once->at_stake_ns, us(330));
  // The second pass of the judge adds to the maker's gradients of the first; both sums are dropped.
  const auto twice = find_by_rule(draw_clearing({.judged = 2}), "discarded-gradients");
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->at_stake_ns, us(660));
}

TEST(DiscardedGradientsTest, IsQuietWhereNothingShowsWhoseGradientsAreCleared) {
  EXPECT_FALSE(find_by_rule(draw_clearing({.is_detached = true}), "discarded-gradients"));
  EXPECT_FALSE(find_by_rule(draw_clearing({.fills_zeros = true}), "discarded-gradients"));
  // A step reads the sum of both passes, and the zero_grad() before the second is that of the other optimizer.
  EXPECT_FALSE(find_by_rule(draw_clearing({.clears_after_step = true}), "discarded-gradients"));
}

// Several passes of the judge: their gradients of the maker add up, and the sum is dropped.
TEST(DiscardedGradientsTest, FollowsGradientsThatAddUpUntilTheyAreDropped) {
  ProgramSketch program;
  PassPen passes(program);
  program.steps(4, [&](ProgramSketch& p) {
    for (const bool is_second : {false, true}) {
      passes.forward();
      passes.forward();
      passes.start();
      passes.backward(3, kJudge, false);
      passes.backward(3, kMaker, is_second);
      draw_update(p, kJudge);
    }
    passes.forward();
    passes.forward();
    passes.start();
    passes.backward(3, kJudge, false);
    passes.backward(3, kMaker, false);
    draw_update(p, kMaker);
  });
  const auto finding = find_by_rule(program.trace(), "discarded-gradients");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(2 * 330));
}

TEST(DiscardedGradientsTest, IsQuietAboutGradientsThatAddUp) {
  EXPECT_FALSE(find_by_rule(draw_gan({.is_accumulated = true}), "discarded-gradients"));
}

TEST(DiscardedGradientsTest, IsQuietWhereTheProgramReadsThem) {
  EXPECT_FALSE(find_by_rule(draw_gan({.is_read = true}), "discarded-gradients"));
}

}  // namespace
}  // namespace lanescope::explain
