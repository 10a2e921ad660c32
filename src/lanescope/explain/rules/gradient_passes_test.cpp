#include "lanescope/explain/rules/gradient_passes.h"

#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

// In a step so many passes that only return gradients, then one that adds to those of parameters, each after an operator.
rules::GradientPasses count_drawn(int inner) {
  testing::Sketch sketch;
  std::int64_t now = us(1000);
  const testing::Fields other{.tid = 200};
  const std::string node = "autograd::engine::evaluate_function: ";
  for (int step = 0; step < 4; ++step) {
    const std::int64_t start = now;
    for (int pass = 0; pass <= inner; ++pass) {
      sketch.op("aten::linear", now, us(20));
      sketch.op(node + "AddmmBackward0", now + us(20), us(10), other);
      sketch.op(node + "TBackward0", now + us(30), us(10), other);
      if (pass == inner)
        sketch.op(node + "torch::autograd::AccumulateGrad", now + us(40), us(5), other);
      now += us(50);
    }
    sketch.annotation("ProfilerStep#" + std::to_string(step + 1), start, now - start);
    now += us(1);
  }
  const Trace trace = sketch.trace();
  const auto facts = *gather_facts(trace);
  return rules::count_gradient_passes(facts);
}

// In a step `outputs` times `inputs` passes, each output's from its own node, then one that adds. The nodes that end the others do
// nothing.
rules::GradientPasses count_derivatives(int outputs, int inputs) {
  testing::Sketch sketch;
  std::int64_t now = us(1000), number = 0;
  const std::string node = "autograd::engine::evaluate_function: ";
  for (int step = 0; step < 4; ++step) {
    const std::int64_t start = now;
    sketch.op("aten::linear", now, us(20));
    now += us(20);
    number += 100;
    for (int pass = 0; pass <= outputs * inputs; ++pass) {
      const bool adds = pass == outputs * inputs;
      sketch.op("aten::ones_like", now, us(5));
      sketch.op(node + "SliceBackward0", now + us(5), us(10),
                {.tid = 200, .sequence = number + pass / inputs});
      sketch.op(node + "torch::autograd::AccumulateGrad", now + us(20), us(5), {.tid = 200});
      if (adds) sketch.op("torch::autograd::AccumulateGrad", now + us(21), us(3), {.tid = 200});
      now += us(30);
    }
    sketch.annotation("ProfilerStep#" + std::to_string(step + 1), start, now - start);
    now += us(1);
  }
  const Trace trace = sketch.trace();
  return rules::count_gradient_passes(*gather_facts(trace));
}

// Three steady steps: u by x, y and t, then v by all three: 4 of 6 passes begin where another did.
TEST(GradientPassesTest, DerivativesOfOneOutputAreNoTasks) {
  const rules::GradientPasses found = count_derivatives(2, 3);
  EXPECT_EQ(found.inner, 18u);
  EXPECT_EQ(found.adding, 3u);
  EXPECT_EQ(found.of_same_output, 12u);
  EXPECT_FALSE(found.are_of_tasks());
  EXPECT_EQ(count_derivatives(6, 1).of_same_output, 0u);
}

// Three steady steps. A penalty on gradients has one inner pass a step, three tasks of a step have as many.
TEST(GradientPassesTest, CountsPassesByWhatTheyAddTo) {
  EXPECT_EQ(count_drawn(1).inner, 3u);
  EXPECT_EQ(count_drawn(1).adding, 3u);
  EXPECT_FALSE(count_drawn(1).are_of_tasks());
  EXPECT_EQ(count_drawn(3).inner, 9u);
  EXPECT_TRUE(count_drawn(3).are_of_tasks());
  EXPECT_FALSE(count_drawn(0).are_of_tasks());
}

}  // namespace
}  // namespace lanescope::explain
