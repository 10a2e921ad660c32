#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/attention_rates.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

// 64 heads of 2048 queries by 2048 keys of 64 numbers: 2 * 64 * 2048^2 * 128 = 68.7 G operations, 158,706 ns at the
// 433 TFLOP/s that were measured for such a call of 131,072 positions; 4 * 16.8 MB are 13,981 ns of memory.
void draw_fused(ProgramSketch& p, std::int64_t us, const char* causal = "False") {
  Fields inputs = shapes("[[4, 16, 2048, 64], [4, 16, 2048, 64], [4, 16, 2048, 64], [], [], []]",
                         R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "", "", ""])");
  inputs.concrete_inputs = R"(["", "", "", "0.", ")" + std::string(causal) + R"(", "False"])";
  p.op("aten::_scaled_dot_product_flash_attention", inputs, "flash_fwd_kernel", us);
}

TEST(SlowAttentionTest, SpeaksBelowFortyPercent) {
  const auto finding =
      find_in_steps("slow-attention", [](ProgramSketch& p) { draw_fused(p, 250); });
  ASSERT_TRUE(finding);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), 250'000 - 158'706, 100);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 275);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(1).text, "a forward pass");
}

void draw_attention(ProgramSketch& p, const std::string& op, const std::string& kernel) {
  // Heads of 80 numbers: no rate is known for them. 85.9 G operations in 250 us are 35 % of the peak.
  Fields inputs = shapes("[[4, 16, 2048, 80], [4, 16, 2048, 80], [4, 16, 2048, 80], [], [], []]",
                         R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "", "", ""])");
  p.op(op, inputs, kernel, 250);
}

TEST(SlowAttentionTest, AdvisesNoBackendThatIsInUse) {
  const auto advice = [](const std::string& op, const std::string& kernel) {
    const auto finding =
        find_in_steps("slow-attention", [&](ProgramSketch& p) { draw_attention(p, op, kernel); });
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(advice("aten::_scaled_dot_product_flash_attention", "flash_fwd_kernel"),
              ::testing::HasSubstr("CUDNN_ATTENTION"));
  // The fastest kernels of this GPU, in calls for which no rate is known.
  for (const auto& [op, kernel] :
       {std::pair("aten::_scaled_dot_product_cudnn_attention",
                  "cudnn_generated_fort_native_sdpa_fprop"),
        std::pair("aten::_scaled_dot_product_flash_attention", "flash::FlashAttnFwdSm90<int>")})
    EXPECT_FALSE(
        find_in_steps("slow-attention", [&](ProgramSketch& p) { draw_attention(p, op, kernel); }));
}

// 16 heads of 8192 queries by 8192 keys of 64 numbers: 274.9 G operations, at 443 TFLOP/s 620,483 ns. cuDNN's own kernel may be that
// slow where it shares the GPU; within 15 % of the known rate nothing is said, and of FlashAttention 2 neither.
TEST(SlowAttentionTest, ComparesLongSequencesWithTheRateThatCudnnReaches) {
  const auto finding_of = [](const char* op, std::int64_t time_us) {
    Fields inputs = shapes("[[1, 16, 8192, 64], [1, 16, 8192, 64], [1, 16, 8192, 64], [], [], []]",
                           R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "", "", ""])");
    inputs.concrete_inputs = R"(["", "", "", "0.", "False", "False"])";
    return find_in_steps("slow-attention",
                         [&](ProgramSketch& p) { p.op(op, inputs, "flash_fwd_kernel", time_us); });
  };
  const auto slow = finding_of("aten::_scaled_dot_product_flash_attention", 956);
  ASSERT_TRUE(slow);
  EXPECT_NEAR(static_cast<double>(slow->at_stake_ns), 956'000 - 620'483, 500);
  EXPECT_THAT(slow->action.pattern, ::testing::HasSubstr("CUDNN_ATTENTION"));
  EXPECT_FALSE(finding_of("aten::_scaled_dot_product_flash_attention", 705));
  const auto on_cudnn = finding_of("aten::_scaled_dot_product_cudnn_attention", 1200);
  ASSERT_TRUE(on_cudnn);
  EXPECT_EQ(on_cudnn->action.pattern, "No change is known: the fastest known backend is in use");
  EXPECT_EQ(on_cudnn->kind, FindingKind::kWhere);  // no cost that a change takes away
}

// Heads of 64 numbers over 512 positions, 256 of them: 17.2 G operations; 361 TFLOP/s were measured, so 47,591 ns. cuDNN's kernel at
// 55 us is as fast as such kernels are (15 % of lead: 54.7 us); at 90 us it is not. With 32 heads (16,384 positions) nobody knows
// how fast cuDNN's is, but FlashAttention 2 cannot be faster than the row: 2.15 G operations, 5,949 ns.
TEST(SlowAttentionTest, KnowsRatesOfShortSequencesForAsManyPositions) {
  const auto finding_of = [](const char* op, int heads, std::int64_t time_us) {
    const std::string tensor = "[" + std::to_string(heads / 16) + ", 16, 512, 64]";
    Fields inputs = shapes("[" + tensor + ", " + tensor + ", " + tensor + ", [], [], []]",
                           R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "", "", ""])");
    inputs.concrete_inputs = R"(["", "", "", "0.", "False", "False"])";
    return find_in_steps("slow-attention",
                         [&](ProgramSketch& p) { p.op(op, inputs, "sdpa_kernel", time_us); });
  };
  constexpr char kCudnn[] = "aten::_scaled_dot_product_cudnn_attention",
                 kFlash[] = "aten::_scaled_dot_product_flash_attention";
  EXPECT_FALSE(finding_of(kCudnn, 256, 54));
  const auto slow = finding_of(kCudnn, 256, 90);
  ASSERT_TRUE(slow);
  EXPECT_NEAR(static_cast<double>(slow->at_stake_ns), 90'000 - 47'591, 100);
  EXPECT_FALSE(finding_of(kCudnn, 32, 20));
  const auto small = finding_of(kFlash, 32, 20);
  ASSERT_TRUE(small);
  EXPECT_NEAR(static_cast<double>(small->at_stake_ns), 20'000 - 5'949, 100);
}

TEST(SlowAttentionTest, TakesTheRowOfTheNextShorterLengthAndOfAsManyPositions) {
  using rules::find_attention_rate;
  const auto exact = find_attention_rate(128, true, 1024, 524'288);
  ASSERT_TRUE(exact.row);
  EXPECT_EQ(exact.row->forward, 469);
  EXPECT_FALSE(exact.is_above);
  EXPECT_EQ(find_attention_rate(128, true, 2047, 300'000).row->forward, 404);
  const auto fewer = find_attention_rate(128, true, 2047, 100'000);
  EXPECT_EQ(fewer.row->forward, 404);
  EXPECT_TRUE(fewer.is_above);
  EXPECT_FALSE(find_attention_rate(128, true, 255, 524'288).row);
  EXPECT_FALSE(find_attention_rate(96, true, 1024, 524'288).row);
}

TEST(SlowAttentionTest, IsQuietAboveItAndCountsCausalWorkByHalf) {
  EXPECT_FALSE(find_in_steps("slow-attention", [](ProgramSketch& p) { draw_fused(p, 160); }));
  // Half of the operations in 160 us: 21.7 %.
  EXPECT_TRUE(
      find_in_steps("slow-attention", [](ProgramSketch& p) { draw_fused(p, 160, "True"); }));
}

// FlashAttention and cuDNN's attention take half precision only.
TEST(SlowAttentionTest, AdvisesHalfPrecisionForFloat32) {
  const auto finding = find_in_steps("slow-attention", [](ProgramSketch& p) {
    p.op("aten::_scaled_dot_product_efficient_attention",
         shapes("[[4, 16, 2048, 64], [4, 16, 2048, 64], [4, 16, 2048, 64], [], [], []]",
                R"(["float", "float", "float", "", "", ""])"),
         "fmha_cutlassF_f32_aligned_64x64_rf_sm80", 9000);
  });
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("bfloat16"));
  EXPECT_THAT(finding->action.pattern, ::testing::Not(::testing::HasSubstr("CUDNN")));
}

// A causal mask is one of query length x key length; a mask of padding is not.
TEST(SlowAttentionTest, AdvisesIsCausalForASquareMaskOnly) {
  const auto advice = [](const std::string& mask) {
    const auto finding = find_in_steps("slow-attention", [&](ProgramSketch& p) {
      p.begin_op("aten::scaled_dot_product_attention",
                 shapes("[[4, 16, 2048, 64], [4, 16, 2048, 64], [4, 16, 2048, 64], " + mask + "]",
                        R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])"));
      draw_fused(p, 250);
      p.end();
    });
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(advice("[2048, 2048]"), ::testing::HasSubstr("is_causal=True"));
  EXPECT_THAT(advice("[4, 1, 2048, 2048]"), ::testing::HasSubstr("is_causal=True"));
  EXPECT_THAT(advice("[4, 1, 1, 2048]"), ::testing::Not(::testing::HasSubstr("is_causal")));
}

// The mask is the ninth input of cuDNN's backward operator, outside of the call of the forward pass. 171.8 G operations in 700 us.
TEST(SlowAttentionTest, SeesTheMaskOfABackwardPass) {
  const auto advice = [](const std::string& mask) {
    const auto finding = find_in_steps("slow-attention", [&](ProgramSketch& p) {
      constexpr char kFive[] =
          "[[4, 16, 2048, 64], [4, 16, 2048, 64], [4, 16, 2048, 64], [4, 16, 2048, 64], "
          "[4, 16, 2048, 64], [4, 16, 2048, 1], [], [], ";
      constexpr char kB[] = R"("c10::BFloat16", )";
      std::string types = "[";
      for (int i = 0; i < 5; ++i) types += kB;
      types += R"("float", "long int", "long int", )" + std::string(kB);
      Fields inputs = shapes(kFive + mask + ", [], [], [], [], [], [], []]",
                             types + R"("", "", "Scalar", "Scalar", "Scalar", "Scalar", ""])");
      inputs.concrete_inputs =
          R"(["", "", "", "", "", "", "", "", "", "", "", "2048", "2048", "0.", "False", ""])";
      p.op("aten::_scaled_dot_product_cudnn_attention_backward", inputs,
           "cudnn_generated_sdpa_bprop", 700);
    });
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(advice("[2048, 2048]"), ::testing::HasSubstr("is_causal=True"));
  EXPECT_THAT(advice("[4, 1, 1, 2048]"), ::testing::Not(::testing::HasSubstr("is_causal")));
}

}  // namespace
}  // namespace lanescope::explain
