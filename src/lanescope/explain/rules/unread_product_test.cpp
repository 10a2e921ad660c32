#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

struct DrawnFrozen {
  std::string node = "FrozenLinearBackward";
  bool is_accumulated = false;   // the weight is trained after all
  bool is_scaled = false;        // backward() itself takes the product
  bool has_equal_layer = false;  // a trained layer of the same size runs backward after it
  bool has_own_kernel = false;   // backward() launches a kernel that no operator shows
};

Fields matrices(const char* dims, const char* types) {
  return {.input_dims = dims, .input_types = types};
}

// Four steps with a node that computes two products, of 100 us each on the GPU: grad.T @ x, of the size of the weight
// [32, 16], and grad @ weight, which the next node takes. The weight is cast in between, which makes a tensor of
// that size, too.
Trace draw_frozen(const DrawnFrozen& drawn) {
  constexpr char kFloats[] = R"(["float", "float"])";
  constexpr std::string_view kRun = "autograd::engine::evaluate_function: ";
  ProgramSketch program;
  std::int64_t number = 9;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin_op(std::string(kRun) + drawn.node, {.sequence = number += 2, .fwd_thread = 1});
    p.begin_op(drawn.node, {.sequence = number, .fwd_thread = 1, .input_dims = "[[64, 32]]"});
    p.op("aten::mm", matrices("[[32, 64], [64, 16]]", kFloats), "gemm", 100);
    if (drawn.is_scaled) p.op("aten::mul_", matrices("[[32, 16], []]", kFloats), "mul", 1);
    if (drawn.has_own_kernel) p.kernel("my_triton_kernel", 1);
    p.op("aten::to", matrices("[[32, 16], []]", R"(["signed char", "Scalar"])"), "cast", 1);
    p.op("aten::mm", matrices("[[64, 32], [32, 16]]", kFloats), "gemm", 100);
    p.end().end();
    if (drawn.is_accumulated) {
      p.begin_op(std::string(kRun) + "torch::autograd::AccumulateGrad");
      p.begin_op("torch::autograd::AccumulateGrad", matrices("[[32, 16]]", R"(["float"])"));
      p.end().end();
    }
    if (drawn.has_equal_layer) {
      p.begin_op(std::string(kRun) + "MmBackward0", {.sequence = number - 1, .fwd_thread = 1});
      p.begin_op("MmBackward0", matrices("[[64, 32]]", R"(["float"])"));
      p.op("aten::mm", matrices("[[32, 64], [64, 16]]", kFloats), "gemm", 1).end().end();
      p.begin_op(std::string(kRun) + "TBackward0", {.sequence = number - 1, .fwd_thread = 1});
      p.op("TBackward0", matrices("[[32, 16]]", R"(["float"])"), "none", 1).end();
      p.begin_op(std::string(kRun) + "torch::autograd::AccumulateGrad");
      p.begin_op("torch::autograd::AccumulateGrad", matrices("[[16, 32]]", R"(["float"])"));
      p.end().end();
    }
    p.begin_op(std::string(kRun) + "ReluBackward0", {.sequence = number - 1, .fwd_thread = 1});
    p.op("ReluBackward0", matrices("[[64, 16]]", R"(["float"])"), "relu", 1).end();
  });
  return program.trace();
}

// The GPU is idle for 2 us while the first product is called, before its kernel begins; the kernel takes 100 us.
TEST(UnreadProductTest, TellsOfAProductThatNothingTakes) {
  const auto finding = find_by_rule(draw_frozen({}), "unread-product");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values[0].text, "FrozenLinearBackward");
  EXPECT_EQ(finding->brief.values[1].integer, 1);
  EXPECT_EQ(finding->brief.values[2].text, "[32, 16]");
  EXPECT_GE(finding->at_stake_ns, us(100));
  EXPECT_LE(finding->at_stake_ns, us(104));
}

// The later layer's gradient is its own product.
TEST(UnreadProductTest, KnowsWhatALaterLayerMadeItself) {
  EXPECT_TRUE(find_by_rule(draw_frozen({.has_equal_layer = true}), "unread-product"));
  EXPECT_FALSE(find_by_rule(draw_frozen({.is_accumulated = true, .has_equal_layer = true}),
                            "unread-product"));
}

TEST(UnreadProductTest, IsQuietAboutTrainedWeights) {
  EXPECT_FALSE(find_by_rule(draw_frozen({.is_accumulated = true}), "unread-product"));
}

TEST(UnreadProductTest, IsQuietWhereBackwardItselfTakesIt) {
  EXPECT_FALSE(find_by_rule(draw_frozen({.is_scaled = true}), "unread-product"));
}

TEST(UnreadProductTest, IsQuietWhereAKernelMayTakeIt) {
  EXPECT_FALSE(find_by_rule(draw_frozen({.has_own_kernel = true}), "unread-product"));
}

TEST(UnreadProductTest, IsQuietAboutNodesOfTorch) {
  EXPECT_FALSE(find_by_rule(draw_frozen({.node = "AddmmBackward0"}), "unread-product"));
}

}  // namespace
}  // namespace lanescope::explain
