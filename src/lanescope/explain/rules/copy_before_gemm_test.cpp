#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

constexpr char kAddmmDims[] = "[[4096, 4096], [4096, 4096], [4096, 4096], [], []]";

constexpr char kAddmmTypes[] =
    R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"])";

// 4096 * 4096 * 2 bytes before a matmul of 200 us.
TEST(CopyBeforeGemmTest, ExplainsTheCopyThatAddmmMakes) {
  const auto finding = find_in_steps("copy-before-gemm", [](ProgramSketch& p) {
    p.begin_op("aten::addmm", shapes(kAddmmDims, kAddmmTypes));
    p.copy(20, 33'554'432).kernel(kNvjet, 180).end();
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->brief.pattern, "addmm copies the matrix that it adds, once per step");
  // 2 * 4096^3 operations take an H200 138.9 us of the matmul's 180: reading the matrix again may
  // cost up to the copy's 20 us.
  EXPECT_EQ(finding->at_stake_ns, 20'000 + 20'000);
  EXPECT_EQ(finding->arithmetic.at(0).values[0].integer, 3 * 33'554'432);
}

// 2 * 4096^3 / 989.5e12 is 138,897 ns: of a matmul of 150 us only what is above that can be due to
// the matrix that it reads.
TEST(CopyBeforeGemmTest, TheMatmulCannotBeFasterThanItsOperations) {
  const auto finding = find_in_steps("copy-before-gemm", [](ProgramSketch& p) {
    p.begin_op("aten::addmm", shapes(kAddmmDims, kAddmmTypes));
    p.copy(20, 33'554'432).kernel(kNvjet, 150).end();
  });
  ASSERT_TRUE(finding);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), 20'000 + (150'000 - 138'897), 1);
}

// In place, baddbmm_ copies nothing, and reads the matrices as before: the copies of 20 us can go, no more.
TEST(CopyBeforeGemmTest, AddsToBatchesInPlace) {
  const auto in = [](const char* op, const char* dims) {
    return find_in_steps("copy-before-gemm", [&](ProgramSketch& p) {
      p.begin_op(op, shapes(dims, kAddmmTypes)).begin_op("aten::copy_");
      p.copy(20, 33'554'432).end().kernel(kNvjet, 180).end();
    });
  };
  const auto batched =
      in("aten::baddbmm", "[[1, 4096, 4096], [1, 4096, 4096], [1, 4096, 4096], [], []]");
  ASSERT_TRUE(batched);
  EXPECT_EQ(batched->at_stake_ns, 20'000);
  EXPECT_THAT(batched->action.pattern, ::testing::HasSubstr("y.baddbmm_(a, b)"));
  const auto single = in("aten::addmm", kAddmmDims);
  ASSERT_TRUE(single);
  EXPECT_EQ(single->at_stake_ns, 20'000 + 20'000);
  EXPECT_THAT(single->action.pattern, ::testing::HasSubstr("bias vector"));
}

TEST(CopyBeforeGemmTest, IsNormalWhenItCostsNothing) {
  const auto finding = find_in_steps("copy-before-gemm", [](ProgramSketch& p) {
    p.begin_op("aten::addmm", shapes(kAddmmDims, kAddmmTypes));
    p.copy(1, 33'554'432).kernel(kNvjet, 180).end();
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
}

TEST(CopyBeforeGemmTest, IsQuietAboutOtherCopies) {
  // The program's own copy, before a matmul.
  EXPECT_FALSE(find_in_steps("copy-before-gemm", [](ProgramSketch& p) {
    p.begin_op("aten::copy_").copy(20, 33'554'432).end();
    p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 180);
  }));
  // A few bytes inside addmm: the library's workspace.
  EXPECT_FALSE(find_in_steps("copy-before-gemm", [](ProgramSketch& p) {
    p.begin_op("aten::addmm", shapes(kAddmmDims, kAddmmTypes));
    p.copy(20, 4096).kernel(kNvjet, 180).end();
  }));
}

}  // namespace
}  // namespace lanescope::explain
