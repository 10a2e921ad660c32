#include <gtest/gtest.h>

#include <array>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

constexpr char kLists[] =
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
    "namespace)::TensorListMetadata<2>, at::native::(anonymous "
    "namespace)::BinaryOpScalarFunctor<float, 2, 1, 1>, std::multiplies<float>, float>(int)";

struct DrawnOptimizer {
  const char* range = "Optimizer.step#AdamW.step";
  std::size_t operations = 5;
  std::int64_t model_us = 400;
};

// Steps of a model and of operations over lists: the first takes 60 us, the others 40.
Trace draw_passes(const DrawnOptimizer& drawn) {
  constexpr std::array<const char*, 5> kOps = {"aten::_foreach_addcdiv_", "aten::_foreach_mul_",
                                               "aten::_foreach_lerp_", "aten::_foreach_sqrt",
                                               "aten::_foreach_div_"};
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.op("aten::mm", {}, "gemm", drawn.model_us);
    p.begin(drawn.range);
    for (std::size_t i = 0; i < drawn.operations; ++i)
      p.op(kOps.at(i), {}, kLists, i == 0 ? 60 : 40);
    p.end();
  });
  return program.trace();
}

// 60 + 4 x 40 us, of which twice 60 us stay.
TEST(OptimizerPassesTest, ComparesWithOneFusedPass) {
  const auto finding = find_by_rule(draw_passes({}), "optimizer-passes");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values[0].integer, 5);
  EXPECT_EQ(finding->at_stake_ns, us(100));
}

TEST(OptimizerPassesTest, IsQuietAboutOneFusedOperation) {
  EXPECT_FALSE(find_by_rule(draw_passes({.operations = 1}), "optimizer-passes"));
}

TEST(OptimizerPassesTest, IsQuietWhereNoFusedFormExists) {
  EXPECT_FALSE(
      find_by_rule(draw_passes({.range = "Optimizer.step#RAdam.step"}), "optimizer-passes"));
}

TEST(OptimizerPassesTest, IsQuietAboutASmallPart) {
  EXPECT_FALSE(find_by_rule(draw_passes({.model_us = 4'000}), "optimizer-passes"));
}

}  // namespace
}  // namespace lanescope::explain
