#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using testing::ProgramSketch;

void draw_attention(ProgramSketch& p, std::string_view inner) {
  p.begin_op("aten::scaled_dot_product_attention").begin_op(inner);
  p.begin_op("aten::matmul").op("aten::bmm", {}, kNvjet, 40).end();
  p.op("aten::_softmax", {}, "softmax_kernel", 30);
  p.begin_op("aten::matmul").op("aten::bmm", {}, kNvjet, 40).end();
  p.end().end();
}

TEST(MathAttentionTest, SpeaksOfTheFallback) {
  const auto finding = find_in_steps("math-attention", [](ProgramSketch& p) {
    draw_attention(p, "aten::_scaled_dot_product_attention_math");
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 3);
  EXPECT_EQ(finding->verdict.values.at(2).integer, 9);
  EXPECT_EQ(finding->at_stake_ns, 110'000);
}

// What the inputs of the fallback say, and nothing that holds already.
TEST(MathAttentionTest, AdvisesWhatTheInputsShow) {
  const auto advice = [](const testing::Fields& inputs) {
    const auto finding = find_in_steps("math-attention", [&](ProgramSketch& p) {
      p.begin_op("aten::_scaled_dot_product_attention_math", inputs);
      p.op("aten::bmm", {}, kNvjet, 40).op("aten::_softmax", {}, "softmax_kernel", 30);
      p.op("aten::bmm", {}, kNvjet, 40).end();
    });
    EXPECT_TRUE(finding);
    if (!finding) return std::string();
    return finding->action.pattern +
           (finding->action.values.empty() ? "" : finding->action.values[0].text);
  };
  constexpr char kThree[] = "[[4, 16, 2048, 64], [4, 16, 2048, 64], [4, 16, 2048, 64], []]";
  EXPECT_THAT(advice(shapes(kThree, R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", ""])")),
              HasSubstr("sdpa_kernel(MATH)"));
  EXPECT_EQ(advice(shapes(kThree, R"(["float", "float", "float", ""])")),
            "Use {}bfloat16 or float16");
  EXPECT_EQ(advice(shapes("[[4, 2, 9, 512], [4, 2, 9, 512], [4, 2, 9, 512], [9, 9]]",
                          R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "bool"])")),
            "Use {}a head size of 256 or less, is_causal=True instead of a causal mask");
  EXPECT_THAT(advice({}), HasSubstr("says what it refuses"));
}

TEST(MathAttentionTest, IsQuietAboutFusedKernelsAndSmallShares) {
  EXPECT_FALSE(find_in_steps("math-attention", [](ProgramSketch& p) {
    draw_attention(p, "aten::_scaled_dot_product_flash_attention");
  }));
  EXPECT_FALSE(find_in_steps("math-attention", [](ProgramSketch& p) {
    draw_attention(p, "aten::_scaled_dot_product_attention_math");
    for (int i = 0; i < 5; ++i) p.op("aten::mm", {}, kNvjet, 1000);
  }));
}

// 8 heads of 512 queries by 512 keys, of 64 numbers; a softmax of their scores; the values.
void draw_written_out(ProgramSketch& p, std::string_view softmax_dims,
                      std::string_view value_dims) {
  p.op("aten::bmm", shapes("[[8, 512, 64], [8, 64, 512]]", kBf16), kNvjet, 40);
  p.op("aten::div", shapes("[[8, 512, 512], []]", R"(["c10::BFloat16", "Scalar"])"), "div", 10);
  p.op("aten::_softmax", shapes(softmax_dims, R"(["c10::BFloat16"])"), "softmax_kernel", 30);
  p.op("aten::bmm", shapes(value_dims, kBf16), kNvjet, 40);
}

// Per step 10 + 30 us between the products, which stay.
TEST(MathAttentionTest, SpeaksOfAttentionThatIsWrittenOut) {
  const auto finding = find_in_steps("math-attention", [](ProgramSketch& p) {
    draw_written_out(p, "[[8, 512, 512]]", "[[8, 512, 512], [8, 512, 64]]");
    p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 169);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 3);
  EXPECT_EQ(finding->verdict.values.at(2).integer, 6);
  EXPECT_EQ(finding->at_stake_ns, 40'000);
  EXPECT_THAT(finding->brief.pattern, HasSubstr(", once per step"));
  EXPECT_THAT(finding->try_next.at(0), HasSubstr("scaled_dot_product_attention"));
}

TEST(MathAttentionTest, IsQuietAboutOtherSoftmaxes) {
  // Another tensor's softmax; a second matmul that does not take it; a single query.
  EXPECT_FALSE(find_in_steps("math-attention", [](ProgramSketch& p) {
    draw_written_out(p, "[[8, 512]]", "[[8, 512, 512], [8, 512, 64]]");
  }));
  EXPECT_FALSE(find_in_steps("math-attention", [](ProgramSketch& p) {
    draw_written_out(p, "[[8, 512, 512]]", "[[8, 512, 64], [8, 64, 512]]");
  }));
  EXPECT_FALSE(find_in_steps("math-attention", [](ProgramSketch& p) {
    draw_written_out(p, "[[4096, 1, 512]]", "[[4096, 1, 512], [4096, 512, 64]]");
  }));
}

struct DrawnNames {
  std::string_view product = "aten::bmm";   // inside of aten::matmul
  std::string_view first = "aten::matmul";  // before the softmax
  std::string_view after_softmax = "aten::to";
  bool trains = false;
};

// Without shapes: matmul 40, div 10, float() 20, mask 30, softmax 30, a cast 20, matmul 40 us. Then the backward part of the softmax,
// 50 us, of the division, 15 us, and of the second product, 60 us.
std::optional<Finding> find_by_names(const DrawnNames& drawn) {
  std::int64_t number = 0;
  return find_in_steps("math-attention", [&](ProgramSketch& p) {
    const auto call = [&](std::string_view op, std::string_view inner, std::int64_t us,
                          std::int64_t sequence = -1) {
      testing::Fields fields;
      if (sequence >= 0) fields.sequence = sequence;
      p.begin_op(op, fields).begin_op(inner, fields).kernel("kernel", us).end().end();
    };
    number += 10;
    call(drawn.first, drawn.product, 40);
    call("aten::div", "aten::div_out", 10, number);
    call("aten::to", "aten::_to_copy", 20);
    call("aten::add", "aten::add_out", 30);
    call("aten::softmax", "aten::_softmax", 30, number + 1);
    call(drawn.after_softmax, "aten::copy_", 20);
    call("aten::matmul", drawn.product, 40, number + 2);
    if (!drawn.trains) return;
    const auto node = [&](std::string_view name, std::int64_t sequence, std::int64_t us) {
      p.begin_op("autograd::engine::evaluate_function: " + std::string(name),
                 {.sequence = sequence, .fwd_thread = 1});
      p.kernel("backward", us).end();
    };
    node("MatmulBackward0", number + 2, 60);
    node("SoftmaxBackward0", number + 1, 50);
    node("DivBackward0", number, 15);
  });
}

TEST(MathAttentionTest, FindsWrittenOutAttentionByNamesAlone) {
  const auto finding = find_by_names({});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(10 + 20 + 30 + 30 + 20));
  EXPECT_THAT(finding->action.pattern, HasSubstr("is_causal=True or attn_mask=mask"));
}

TEST(MathAttentionTest, CountsTheBackwardPassBetweenTheProducts) {
  const auto finding = find_by_names({.trains = true});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(110 + 50 + 15));
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, us(50 + 15));
}

TEST(MathAttentionTest, IsQuietByNamesIfItIsNoAttentionOrTheWeightsAreUsed) {
  EXPECT_FALSE(find_by_names({.first = "aten::linear"}));  // a classifier, or a router of experts
  EXPECT_FALSE(find_by_names({.product = "aten::mm"}));    // products with weights
  EXPECT_FALSE(find_by_names({.product = "aten::mv"}));    // pooling by one query
  EXPECT_FALSE(find_by_names({.after_softmax = "aten::topk"}));
  EXPECT_FALSE(find_by_names({.after_softmax = "aten::sum"}));  // of the weights
}

}  // namespace
}  // namespace lanescope::explain
