#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using testing::ProgramSketch;

// 2 * 4096^3 operations at 494.5 T/s are 277,935 ns; 2500 us were measured.
TEST(Fp32MatmulTest, SpeaksOfTheOrdinaryUnits) {
  const auto finding = find_in_steps("fp32-matmul", [](ProgramSketch& p) {
    p.op("aten::mm", shapes(kSquare, kFloat), "ampere_sgemm_128x64_nn", 2500);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->at_stake_ns, 2'500'000 - 277'935);
  EXPECT_THAT(finding->try_next.at(0), HasSubstr("set_float32_matmul_precision"));
  EXPECT_NEAR(finding->arithmetic.at(0).values.at(1).real, 494.5 / 67, 0.001);
}

// The GPU waits for 60 launches of 40 us each, then the CPU waits for the last product. It is the critical path for most of its
// time, or for next to none of it where as much Python follows.
TEST(Fp32MatmulTest, CountsTheCriticalPathOfAStepThatWaitsForTheCpu) {
  const auto found = [](std::int64_t product_us) {
    ProgramSketch program;
    program.sketch().metadata("deviceProperties", kH200);
    program.steps(4, [&](ProgramSketch& p) {
      for (int k = 0; k < 60; ++k)
        p.pass(30).launch({.name = kElementwise, .us = 12, .op = "aten::add"});
      p.launch({.name = "ampere_sgemm_128x64_nn", .us = product_us}).wait();
    });
    return find_by_rule(program.trace(), "fp32-matmul");
  };
  const auto finding = found(1000);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_LE(finding->at_stake_ns, us(1000));
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), 1'000'000 * (1 - 67 / 494.5), 20'000);
  const auto small = found(250);
  EXPECT_TRUE(!small || small->kind == FindingKind::kWhere);
}

// One convolution of 500 us and four products of 300 us: the products are most of it.
TEST(Fp32MatmulTest, ShowsTheOperatorWithMostOfTheTime) {
  const auto finding = find_in_steps("fp32-matmul", [](ProgramSketch& p) {
    p.op("aten::cudnn_convolution", {}, "implicit_convolve_sgemm<float, float>", 500);
    for (int i = 0; i < 4; ++i) p.op("aten::mm", {}, "ampere_sgemm_128x64_nn", 300);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(0).text, "aten::mm");
}

TEST(Fp32MatmulTest, NeedsNoShapes) {
  const auto finding = find_in_steps("fp32-matmul", [](ProgramSketch& p) {
    p.op("aten::mm", {}, "ampere_sgemm_128x64_nn", 2500);
  });
  ASSERT_TRUE(finding);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), 2'500'000 * (1 - 67 / 494.5), 2);
}

TEST(Fp32MatmulTest, IsQuietOnTensorCoresAndVectors) {
  EXPECT_FALSE(find_in_steps("fp32-matmul", [](ProgramSketch& p) {
    p.op("aten::mm", shapes(kSquare, kFloat),
         "cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4", 400);
  }));
  // One row: limited by memory on any unit.
  EXPECT_FALSE(find_in_steps("fp32-matmul", [](ProgramSketch& p) {
    p.op("aten::mm", shapes("[[1, 4096], [4096, 4096]]", kFloat), "ampere_sgemm_32x32_nn", 2500);
  }));
  EXPECT_FALSE(find_in_steps("fp32-matmul", [](ProgramSketch& p) {
    p.op("aten::mm", shapes(kSquare, R"(["double", "double"])"), "ampere_dgemm_128x64_nn", 2500);
  }));
}

// cuSOLVER chooses them; what a solver computes by aten::mm, autocast reaches.
TEST(Fp32MatmulTest, IsQuietAboutKernelsOfSolvers) {
  const auto inside = [](const char* solver, const char* op) {
    return find_in_steps("fp32-matmul", [&](ProgramSketch& p) {
      p.begin_op(solver, shapes(kSquare, kFloat));
      p.op(op, shapes(kSquare, kFloat), "ampere_sgemm_128x64_nn", 2500).end();
    });
  };
  EXPECT_FALSE(inside("aten::linalg_solve", "aten::linalg_lu_factor_ex"));
  EXPECT_FALSE(inside("aten::cholesky_solve", "aten::copy_"));
  EXPECT_TRUE(inside("aten::linalg_matrix_power", "aten::mm"));
}

// Tensor cores have no use for one channel.
TEST(Fp32MatmulTest, IsQuietAboutConvolutionsOfFewChannels) {
  const auto with = [](const char* weight) {
    return find_in_steps("fp32-matmul", [&](ProgramSketch& p) {
      p.op("aten::convolution", shapes(std::string("[[1, 64, 9000], ") + weight + "]", kFloat),
           "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false, false, "
           "true>(int)",
           2500);
    });
  };
  EXPECT_TRUE(with("[64, 64, 9]"));
  EXPECT_FALSE(with("[1, 64, 9]"));
}

TEST(Fp32MatmulTest, AsksForTheDevice) {
  const auto body = [](ProgramSketch& p) {
    p.op("aten::mm", shapes(kSquare, kFloat), "ampere_sgemm_128x64_nn", 2500);
  };
  EXPECT_EQ(state_in_steps("fp32-matmul", body, ""), RuleRun::State::kNotChecked);
  // A GPU from before tensor cores.
  EXPECT_EQ(
      state_in_steps("fp32-matmul", body,
                     R"([{"id": 0, "name": "Tesla P100", "computeMajor": 6, "computeMinor": 0}])"),
      RuleRun::State::kQuiet);
}

}  // namespace
}  // namespace lanescope::explain
