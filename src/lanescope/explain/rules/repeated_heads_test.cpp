#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_operators_test.h"

namespace lanescope::explain {
namespace {

void draw_view(ProgramSketch& p, std::string_view op, const testing::Fields& fields = {}) {
  p.begin_op(op, fields).end();
}

void draw_copy(ProgramSketch& p, std::string_view op, const testing::Fields& fields = {}) {
  p.begin_op(op, fields).begin_op("aten::clone").begin_op("aten::copy_");
  p.kernel("copy", 100).end().end().end();
}

testing::Fields one(std::string_view dims) {
  return inputs("[" + std::string(dims) + "]", R"(["float"])", "", "");
}

// [16, 8, 1, 4096, 64] for four heads of the query each.
void repeat(ProgramSketch& p, std::string_view small = {}, std::string_view large = {}) {
  draw_view(p, "aten::unsqueeze");
  draw_view(p, "aten::expand", small.empty() ? testing::Fields{} : one(small));
  draw_copy(p, "aten::reshape", large.empty() ? testing::Fields{} : one(large));
}

void attend(ProgramSketch& p,
            std::string_view inner = "aten::_scaled_dot_product_cudnn_attention") {
  p.begin_op("aten::scaled_dot_product_attention").begin_op(inner);
  p.kernel("attention", 100).end().end();
}

std::optional<Finding> find_repeated(const std::function<void(ProgramSketch&)>& layer) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int i = 0; i < 2; ++i) {
      p.begin_op("aten::linear").kernel("gemm", 50).end();
      layer(p);
    }
  });
  return find_by_rule(program.trace(), "repeated-heads");
}

TEST(RepeatedHeadsTest, CountsTheCopiesBeforeAttention) {
  const auto finding = find_repeated([](ProgramSketch& p) {
    repeat(p);
    repeat(p);
    attend(p);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(400));  // two layers, two copies of 100 us
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("If they repeat heads"));
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("enable_gqa=True"));
}

TEST(RepeatedHeadsTest, IsSureWhereShapesShowTheHeads) {
  const auto finding = find_repeated([](ProgramSketch& p) {
    for (int i = 0; i < 2; ++i) repeat(p, "[16, 8, 1, 4096, 64]", "[16, 8, 4, 4096, 64]");
    attend(p);
  });
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("Pass them unrepeated"));
}

TEST(RepeatedHeadsTest, IsQuietAboutRepeatedSamples) {
  EXPECT_FALSE(find_repeated([](ProgramSketch& p) {
    for (int i = 0; i < 2; ++i) repeat(p, "[16, 1, 8, 4096, 64]", "[16, 4, 8, 4096, 64]");
    attend(p);
  }));
}

TEST(RepeatedHeadsTest, IsQuietWhereOnlyOneOfBothIsCopied) {
  EXPECT_FALSE(find_repeated([](ProgramSketch& p) {
    repeat(p);
    draw_view(p, "aten::transpose");
    attend(p);
  }));
}

TEST(RepeatedHeadsTest, IsQuietAboutCopiesForAnotherReason) {
  EXPECT_FALSE(find_repeated([](ProgramSketch& p) {
    for (int i = 0; i < 2; ++i) {
      draw_view(p, "aten::unsqueeze");
      draw_view(p, "aten::transpose");
      draw_copy(p, "aten::reshape");
    }
    attend(p);
  }));
}

TEST(RepeatedHeadsTest, IsQuietWhereSomethingElseTakesThem) {
  EXPECT_FALSE(find_repeated([](ProgramSketch& p) {
    repeat(p);
    repeat(p);
    p.begin_op("aten::add").kernel("add", 10).end();
    attend(p);
  }));
}

// Not every kernel of attention takes fewer heads of keys and values.
TEST(RepeatedHeadsTest, AdvisesRowsWhereNoKernelTakesGroups) {
  const auto of_efficient = find_repeated([](ProgramSketch& p) {
    repeat(p);
    repeat(p);
    attend(p, "aten::_scaled_dot_product_efficient_attention");
  });
  ASSERT_TRUE(of_efficient);
  EXPECT_THAT(of_efficient->action.pattern, ::testing::HasSubstr("q.reshape(batch, kv_heads"));
  const auto of_products = find_repeated([](ProgramSketch& p) {
    repeat(p);
    repeat(p);
    draw_view(p, "aten::transpose");
    p.begin_op("aten::matmul").begin_op("aten::bmm").kernel("gemm", 50).end().end();
    p.begin_op("aten::mul").kernel("mul", 10).end();
    p.begin_op("aten::softmax").kernel("softmax", 10).end();
    p.begin_op("aten::matmul").begin_op("aten::bmm").kernel("gemm", 50).end().end();
  });
  ASSERT_TRUE(of_products);
  EXPECT_THAT(of_products->action.pattern, ::testing::HasSubstr("q.reshape(batch, kv_heads"));
}

}  // namespace
}  // namespace lanescope::explain
