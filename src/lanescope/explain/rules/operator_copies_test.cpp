#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"
#include "lanescope/explain/time_takers.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using testing::ProgramSketch;
using ::testing::StartsWith;

constexpr char kCopy[] =
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::"
    "direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1}> >(int)";
constexpr char kCast[] =
    "void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16_copy_kernel_cuda(at::"
    "TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul> >(int)";

// aten::contiguous copies its tensor, for `us`.
void draw_layout_copy(ProgramSketch& p, std::int64_t us) {
  p.begin_op("aten::contiguous")
      .begin_op("aten::clone")
      .op("aten::copy_", {}, kCopy, us)
      .end()
      .end();
}

void draw_cast(ProgramSketch& p, std::int64_t us) {
  p.begin_op("aten::to").begin_op("aten::_to_copy").op("aten::copy_", {}, kCast, us).end().end();
}

// A group norm that copies for `norm_us` and a convolution that copies for `conv_us`; with kernels of 200 us each.
void draw_block(ProgramSketch& p, std::int64_t norm_us, std::int64_t conv_us) {
  p.begin_op("aten::group_norm");
  if (norm_us > 0) draw_layout_copy(p, norm_us);
  p.op("aten::native_group_norm", {}, "RowwiseMoments", 200).end();
  p.begin_op("aten::conv2d").begin_op("aten::_convolution");
  if (conv_us > 0) draw_layout_copy(p, conv_us);
  p.op("aten::cudnn_convolution", {}, kFprop, 200).end().end();
}

TEST(OperatorCopiesTest, GroupNormsAndConvolutionsCopyForEachOther) {
  const auto finding =
      find_in_steps("operator-copies", [](ProgramSketch& p) { draw_block(p, 60, 40); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(100));
  EXPECT_THAT(finding->brief.pattern, StartsWith("Group norms copy to channels-first"));
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 3);  // by group norms, in three steps
  EXPECT_EQ(finding->arithmetic.at(0).values.at(1).integer, us(60));
  EXPECT_EQ(finding->arithmetic.at(0).values.at(3).integer, us(40));
}

// One side alone may have been given a permuted tensor; casts are autocast's.
TEST(OperatorCopiesTest, IsQuietWhereOneSideCopiesOrCasts) {
  EXPECT_FALSE(find_in_steps("operator-copies", [](ProgramSketch& p) { draw_block(p, 60, 0); }));
  EXPECT_FALSE(find_in_steps("operator-copies", [](ProgramSketch& p) { draw_block(p, 0, 60); }));
  EXPECT_FALSE(find_in_steps("operator-copies", [](ProgramSketch& p) {
    draw_block(p, 60, 0);
    p.begin_op("aten::conv2d").begin_op("aten::_convolution");
    draw_cast(p, 60);
    p.op("aten::cudnn_convolution", {}, kFprop, 200).end().end();
  }));
}

// A mixture of experts: a one-hot tensor, `between` other calls, and an einsum of 30 us of copies, 20 of casts and a product of 50.
void draw_einsum(ProgramSketch& p, int between, bool has_one_hot = true) {
  if (has_one_hot) p.op("aten::one_hot", {}, "scatter", 5);
  for (int i = 0; i < between; ++i) p.op("aten::mul", {}, kElementwise, 5);
  p.begin_op("aten::einsum");
  draw_layout_copy(p, 30);
  draw_cast(p, 20);
  p.op("aten::bmm", {}, kNvjet, 50).end();
  p.op("aten::mm", {}, kNvjet, 100);
}

TEST(OperatorCopiesTest, AnEinsumWithAOneHotTensorMovesZeros) {
  const auto finding =
      find_in_steps("operator-copies", [](ProgramSketch& p) { draw_einsum(p, 6); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(100));
  EXPECT_THAT(finding->action.pattern, HasSubstr("index_copy"));
  EXPECT_EQ(finding->verdict.values.at(3).integer, us(50));  // its copies
}

// One-hot labels of a loss come long before the next einsum, and einsums of attention know no one-hot tensor.
TEST(OperatorCopiesTest, IsQuietAboutOtherEinsums) {
  EXPECT_FALSE(find_in_steps("operator-copies", [](ProgramSketch& p) { draw_einsum(p, 40); }));
  EXPECT_FALSE(
      find_in_steps("operator-copies", [](ProgramSketch& p) { draw_einsum(p, 6, false); }));
}

// Copies are the largest kind of work: the screen says who asked for them.
TEST(OperatorCopiesTest, NamesWhoAsksForMostOfTheCopies) {
  const Trace trace = draw_steps(
      [](ProgramSketch& p) {
        draw_block(p, 300, 250);
        p.begin_op("aten::linear");
        draw_cast(p, 20);
        p.end();
      },
      kH200);
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  const auto kinds = kinds_of_gpu_work(*facts);
  ASSERT_FALSE(kinds.empty());
  EXPECT_EQ(kinds.front().words, "casts and copies");
  EXPECT_EQ(kinds.front().sources.pattern, "most in {} and {}");
  EXPECT_EQ(kinds.front().sources.values.at(0).text, "aten::group_norm");
  EXPECT_EQ(kinds.front().sources.values.at(1).text, "aten::conv2d");
}

}  // namespace
}  // namespace lanescope::explain
