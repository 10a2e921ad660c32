#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

constexpr char kConvolution[] = "[[8, 64, 56, 56], [64, 64, 3, 3]]";

struct DrawnPrecision {
  std::int64_t tf32_us = 400, half_us = 0, other_us = 200;
  const char* layer = "aten::cudnn_convolution";
  const char* devices = kH200;
  bool trains = true;
};

// A step of convolutions in TF32, elementwise work on float32, and an optimizer of 100 us.
std::optional<Finding> find_tf32(const DrawnPrecision& drawn) {
  return find_in_steps(
      "tf32-matmul",
      [&](ProgramSketch& p) {
        p.op(drawn.layer, shapes(kConvolution, kFloat), kFprop, drawn.tf32_us);
        if (drawn.half_us > 0) p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, drawn.half_us);
        p.op("aten::relu", shapes("[[8, 64, 56, 56]]", R"(["float"])"), "relu", drawn.other_us);
        if (!drawn.trains) return;
        p.begin("Optimizer.step#Adam.step")
            .op("aten::_fused_adam_", shapes("[[64, 64, 3, 3]]", R"(["float"])"), "adam", 100)
            .end();
      },
      drawn.devices);
}

// bfloat16 does twice as many operations: 400 / 2, and half the bytes of the other kernel: 200 / 2. The optimizer stays.
TEST(Tf32MatmulTest, TakesHalfOfTheWorkOnFloat32AsTheLimit) {
  const auto finding = find_tf32({});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), 300'000, 500);
  EXPECT_TRUE(finding->gain_is_bound);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("torch.autocast"));
}

TEST(Tf32MatmulTest, ConvertsAModelThatIsNotTrained) {
  const auto finding = find_tf32({.trains = false});
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("model.to(torch.bfloat16)"));
}

TEST(Tf32MatmulTest, IsQuietWhereFloat32IsNotTheLimitOrIsNeeded) {
  EXPECT_FALSE(find_tf32({.tf32_us = 90}));                     // 90 of 390 us
  EXPECT_FALSE(find_tf32({.half_us = 50}));                     // autocast is on
  EXPECT_TRUE(find_tf32({.half_us = 30}));                      // next to nothing of it
  EXPECT_FALSE(find_tf32({.layer = "aten::linalg_solve_ex"}));  // no model
  EXPECT_FALSE(find_tf32({.devices = ""}));                     // an unknown GPU
}

}  // namespace
}  // namespace lanescope::explain
