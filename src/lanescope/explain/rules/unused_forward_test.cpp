#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

Fields numbered(std::int64_t number, std::int64_t size = 8) {
  return {.sequence = number,
          .input_dims = "[[" + std::to_string(size) + ", 8], [8, 8]]",
          .input_types = R"(["float", "float"])"};
}

struct DrawnUnusedForward {
  int second = 4;             // operators of the second forward pass
  bool has_gradients = true;  // of them
  bool is_used = false;
  bool is_detached = false;  // its result, after the last operator
  bool chooses = false;      // argmax of its result
  std::string last =
      {};  // an operator on its result that makes a node, before an addition that makes none
  std::int64_t size = 16;  // of its batch; that of the first is 8
};

// A step on the CPU: four operators of 100 us, their backward pass, and a second forward pass. Each
// operator makes one node.
Trace draw_unused_forward(const DrawnUnusedForward& drawn) {
  ProgramSketch program;
  std::int64_t number = 0;
  program.steps(4, [&](ProgramSketch& p) {
    const std::int64_t first = number;
    const auto forward = [&](int count, bool records, std::int64_t size) {
      for (int i = 0; i < count; ++i) {
        p.begin_op("aten::linear", records ? numbered(number++, size) : Fields{});
        p.pass(98).end();
      }
    };
    const auto backward = [&](std::int64_t from, std::int64_t end) {
      for (std::int64_t n = end; n-- > from;) {
        p.begin_op("autograd::engine::evaluate_function: AddmmBackward0",
                   {.sequence = n, .fwd_thread = 1});
        p.pass(98).end();
      }
    };
    forward(4, true, 8);
    backward(first, number);
    const std::int64_t second = number;
    forward(drawn.second, drawn.has_gradients, drawn.size);
    if (drawn.is_used) backward(second, number);
    if (drawn.chooses) p.begin_op("aten::argmax", numbered(number)).pass(2).end();
    if (!drawn.last.empty()) {
      p.begin_op(drawn.last, numbered(number++, drawn.size)).pass(18).end();
      p.begin_op("aten::add", numbered(number)).pass(2).end();
    }
    if (drawn.is_detached) p.begin_op("aten::detach", numbered(number)).pass(2).end();
  });
  return program.trace();
}

// Of 3 steady steps: 11 operators of 100 us. The very last of the recording has no number after it.
TEST(UnusedForwardTest, CountsOperatorsWithoutBackward) {
  const auto finding = find_by_rule(draw_unused_forward({}), "unused-forward");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 3);
  EXPECT_EQ(finding->at_stake_ns, us(1'100) / 3);
  EXPECT_NE(finding->action.pattern.find("no_grad"), std::string::npos);
  EXPECT_EQ(finding->brief.pattern.find("again"), std::string::npos);
}

// Distances to the rows of a codebook are needed to choose one: nothing can be left out.
TEST(UnusedForwardTest, PromisesNothingWhereTheResultChooses) {
  const auto finding = find_by_rule(draw_unused_forward({.chooses = true}), "unused-forward");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_EQ(finding->at_stake_ns, 0);
  const auto again =
      find_by_rule(draw_unused_forward({.chooses = true, .size = 8}), "unused-forward");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->kind, FindingKind::kCost);
}

// The nearest points: their places are added to and used as an index, which needs no gradient. Softmax gives no places.
TEST(UnusedForwardTest, PlacesOfValuesAreUsed) {
  const auto places = find_by_rule(draw_unused_forward({.last = "aten::topk"}), "unused-forward");
  ASSERT_TRUE(places);
  EXPECT_EQ(places->kind, FindingKind::kWhere);
  EXPECT_EQ(places->at_stake_ns, 0);
  const auto values =
      find_by_rule(draw_unused_forward({.last = "aten::softmax"}), "unused-forward");
  ASSERT_TRUE(values);
  EXPECT_EQ(values->kind, FindingKind::kCost);
}

// Four operators with a backward pass and four without, each with a kernel of 100 us. torch.no_grad() spares the GPU nothing.
TEST(UnusedForwardTest, PromisesNothingWhereTheGpuIsTheLimit) {
  const auto kind = [](std::int64_t cpu_us) {
    ProgramSketch program;
    std::int64_t number = 0;
    program.steps(4, [&](ProgramSketch& p) {
      const std::int64_t first = number;
      for (int i = 0; i < 8; ++i) {
        if (i == 4)
          for (std::int64_t n = first + 4; n-- > first;)
            p.begin_op("autograd::engine::evaluate_function: AddmmBackward0",
                       {.sequence = n, .fwd_thread = 1})
                .kernel("gemm", 100)
                .end();
        p.begin_op("aten::linear", numbered(number++, i < 4 ? 8 : 16));
        p.kernel("gemm", 100).pass(cpu_us).end();
      }
    });
    const auto finding = find_by_rule(program.trace(), "unused-forward");
    EXPECT_TRUE(finding);
    return finding ? finding->kind : FindingKind::kTrust;
  };
  EXPECT_EQ(kind(10), FindingKind::kWhere);
  EXPECT_EQ(kind(400), FindingKind::kCost);
}

TEST(UnusedForwardTest, SaysWhenTheyAreThoseOfTheLoss) {
  const auto finding = find_by_rule(draw_unused_forward({.size = 8}), "unused-forward");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->brief.pattern.find("once more"), std::string::npos);
  EXPECT_NE(finding->action.pattern.find("first result"), std::string::npos);
}

TEST(UnusedForwardTest, IsQuietWithoutGradientsAndWithABackwardPass) {
  EXPECT_FALSE(find_by_rule(draw_unused_forward({.has_gradients = false}), "unused-forward"));
  EXPECT_FALSE(find_by_rule(draw_unused_forward({.is_used = true}), "unused-forward"));
  EXPECT_FALSE(find_by_rule(draw_unused_forward({.second = 2}), "unused-forward"));  // a metric
}

// As a GAN does: the generator's images, without its gradients, are the discriminator's input.
TEST(UnusedForwardTest, IsQuietAboutResultsThatAreDetached) {
  EXPECT_FALSE(find_by_rule(draw_unused_forward({.is_detached = true}), "unused-forward"));
}

}  // namespace
}  // namespace lanescope::explain
