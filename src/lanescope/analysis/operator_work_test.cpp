#include "lanescope/analysis/operator_work.h"

#include <gtest/gtest.h>

namespace lanescope::analysis {
namespace {

OperatorWork work_of(const OperatorCall& call) {
  const auto work = compute_operator_work(call);
  EXPECT_TRUE(work) << call.name << " " << call.dims;
  return work.value_or(OperatorWork{});
}

// [4, 8] by [8, 16] in float: 2 * 4 * 16 * 8 operations; 32 + 128 + 64 numbers of 4 bytes.
TEST(OperatorWorkTest, CountsAMatrixProduct) {
  const auto work = work_of({"aten::mm", "[[4, 8], [8, 16]]", R"(["float", "float"])", "", ""});
  EXPECT_EQ(work.kind, OperatorKind::kGemm);
  EXPECT_EQ(work.flops, 1024);
  EXPECT_EQ(work.bytes, 896);
  EXPECT_EQ(work.type, "f32");
  EXPECT_EQ(work.gemm, (GemmShape{1, 4, 16, 8, {8, 16, 16}}));
}

// The same with a bias of 16 numbers in bf16, and B stored transposed: its rows are 8 long.
TEST(OperatorWorkTest, CountsTheBiasAndReadsStrides) {
  const auto work =
      work_of({"aten::addmm", "[[16], [4, 8], [8, 16], [], []]",
               R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"])",
               "[[1], [8, 1], [1, 8], [], []]", ""});
  EXPECT_EQ(work.flops, 1024);
  EXPECT_EQ(work.bytes, 2 * (16 + 32 + 128 + 64));
  EXPECT_EQ(work.gemm->leading, (std::array<std::int64_t, 3>{8, 8, 16}));
  // Neither stride is 1: the library has to copy A.
  const auto strided =
      work_of({"aten::mm", "[[4, 8], [8, 16]]", R"(["float", "float"])", "[[32, 2], [16, 1]]", ""});
  EXPECT_EQ(strided.gemm->leading[0], 0);
}

// Three products of [4, 8] by [8, 16]; a linear layer over 2 x 5 rows; a stack times one matrix.
TEST(OperatorWorkTest, CountsBatchesAndRows) {
  EXPECT_EQ(
      work_of({"aten::bmm", "[[3, 4, 8], [3, 8, 16]]", R"(["float", "float"])", "", ""}).flops,
      3 * 1024);
  const auto linear = work_of(
      {"aten::linear", "[[2, 5, 8], [16, 8], [16]]", R"(["float", "float", "float"])", "", ""});
  EXPECT_EQ(linear.flops, 2 * 10 * 16 * 8);
  EXPECT_EQ(linear.gemm->m, 10);
  EXPECT_EQ(linear.gemm->n, 16);
  EXPECT_EQ(
      work_of({"aten::matmul", "[[3, 4, 8], [8, 16]]", R"(["float", "float"])", "", ""}).gemm->m,
      12);
  EXPECT_EQ(work_of({"aten::mv", "[[4, 8], [8]]", R"(["float", "float"])", "", ""}).flops, 64);
}

constexpr char kConvTypes[] =
    R"(["float", "float", "float", "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar"])";

// [2, 3, 8, 8] by 4 filters of [3, 3, 3], padded by 1: 2 * 4 * 8 * 8 = 512 outputs of 27 products.
TEST(OperatorWorkTest, CountsAConvolution) {
  const OperatorCall call{
      "aten::convolution", "[[2, 3, 8, 8], [4, 3, 3, 3], [4], [], [], [], [], [], []]", kConvTypes,
      "", R"(["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"])"};
  const auto work = work_of(call);
  EXPECT_EQ(work.flops, 2 * 512 * 27);
  EXPECT_EQ(work.bytes, 4 * (384 + 108 + 512));
  // Step 2: a quarter of the outputs.
  OperatorCall stepped = call;
  stepped.concrete = R"(["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"])";
  EXPECT_EQ(work_of(stepped).flops, 2 * 128 * 27);
  // Unknown without the concrete inputs.
  OperatorCall bare = call;
  bare.concrete = {};
  EXPECT_FALSE(compute_operator_work(bare));
}

// Each gradient costs what the forward pass cost; the first layer's input needs none.
TEST(OperatorWorkTest, CountsTheGradientsThatAreAsked) {
  OperatorCall call{
      "aten::convolution_backward",
      "[[2, 4, 8, 8], [2, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], [], [], [], []]",
      R"(["float", "float", "float", "ScalarList"])", "",
      R"(["", "", "", "[4]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[True, True, True]"])"};
  EXPECT_EQ(work_of(call).flops, 2 * 2 * 512 * 27);
  EXPECT_EQ(work_of(call).bytes, 4 * (512 + 384 + 108 + 384 + 108));
  call.concrete =
      R"(["", "", "", "[4]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[False, True, True]"])";
  EXPECT_EQ(work_of(call).flops, 2 * 512 * 27);
  EXPECT_EQ(work_of(call).bytes, 4 * (512 + 384 + 108));
}

// 2 heads, 4 queries by 4 keys: 32 pairs of 8 numbers, for Q K and for P V. Causal: 10 of 16 pairs.
TEST(OperatorWorkTest, CountsAttention) {
  constexpr char kDims[] = "[[1, 2, 4, 8], [1, 2, 4, 8], [1, 2, 4, 8], [], [], [], []]";
  constexpr char kTypes[] =
      R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar", "Scalar", "Scalar"])";
  const auto full = work_of({"aten::_scaled_dot_product_flash_attention", kDims, kTypes, "",
                             R"(["", "", "", "0.", "False", "False", "0.125"])"});
  EXPECT_EQ(full.flops, 2 * 32 * 16);
  EXPECT_EQ(full.bytes, 4 * 64 * 2);
  const auto causal = work_of({"aten::_scaled_dot_product_flash_attention", kDims, kTypes, "",
                               R"(["", "", "", "0.", "True", "False", "0.125"])"});
  EXPECT_EQ(causal.flops, 2 * 20 * 16);
  // Five products instead of two.
  const auto backward =
      work_of({"aten::_scaled_dot_product_flash_attention_backward",
               "[[1, 2, 4, 8], [1, 2, 4, 8], [1, 2, 4, 8], [1, 2, 4, 8]]",
               R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])", "", ""});
  EXPECT_EQ(backward.flops, 2 * 32 * 40);
  EXPECT_TRUE(backward.is_attention_backward);
}

// A mask of 2 heads x 4 x 4 numbers is read, too; expanded over the heads it is stored once.
TEST(OperatorWorkTest, CountsTheMaskOfAttention) {
  constexpr char kTypes[] =
      R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar", "Scalar"])";
  OperatorCall call{"aten::_scaled_dot_product_efficient_attention",
                    "[[1, 2, 4, 8], [1, 2, 4, 8], [1, 2, 4, 8], [1, 2, 4, 4], [], [], []]", kTypes,
                    "", R"(["", "", "", "", "False", "0.", "False"])"};
  EXPECT_EQ(work_of(call).bytes, 2 * (4 * 64 + 32));
  call.strides = "[[64, 32, 8, 1], [64, 32, 8, 1], [64, 32, 8, 1], [16, 0, 4, 1], [], [], []]";
  EXPECT_EQ(work_of(call).bytes, 2 * (4 * 64 + 16));
}

TEST(OperatorWorkTest, CountsPassesOverMemory) {
  // Two inputs and an output of 6 numbers.
  const auto add =
      work_of({"aten::add_", "[[2, 3], [2, 3], []]", R"(["float", "float", "Scalar"])", "", ""});
  EXPECT_EQ(add.bytes, 4 * 18);
  EXPECT_EQ(add.flops, 6);
  // An expanded input is stored once: 3 numbers; the output is as large as both together say.
  EXPECT_EQ(
      work_of({"aten::mul", "[[2, 3], [2, 3]]", R"(["float", "float"])", "[[3, 1], [0, 1]]", ""})
          .bytes,
      4 * (6 + 3 + 6));
  EXPECT_EQ(work_of({"aten::mul", "[[2, 1], [3]]", R"(["float", "float"])", "", ""}).bytes,
            4 * (2 + 3 + 6));
  // Comparisons write one byte each; a wider type wins; a number is free.
  EXPECT_EQ(work_of({"aten::gt", "[[8], []]", R"(["float", "Scalar"])", "", ""}).bytes, 32 + 8);
  EXPECT_EQ(work_of({"aten::add", "[[8], [8]]", R"(["c10::Half", "float"])", "", ""}).bytes,
            16 + 32 + 32);
  // What a reduction writes is small and left out.
  EXPECT_EQ(work_of({"aten::sum", "[[8, 8]]", R"(["float"])", "", ""}).bytes, 256);
  EXPECT_EQ(
      work_of({"aten::_softmax", "[[8, 8], [], []]", R"(["float", "Scalar", "Scalar"])", "", ""})
          .bytes,
      512);
  EXPECT_EQ(work_of({"aten::native_layer_norm_backward", "[[8, 8], [8, 8]]",
                     R"(["float", "float"])", "", ""})
                .bytes,
            3 * 256);
  EXPECT_EQ(work_of({"aten::copy_", "[[8], [8]]", R"(["c10::BFloat16", "float"])", "", ""}).bytes,
            48);
  EXPECT_EQ(work_of({"aten::zero_", "[[8]]", R"(["float"])", "", ""}).bytes, 32);
}

TEST(OperatorWorkTest, GivesNothingForWhatDoesNotFit) {
  const char* two = R"(["float", "float"])";
  EXPECT_FALSE(compute_operator_work({"aten::mm", "[[4, 8], [9, 16]]", two, "", ""}));
  EXPECT_FALSE(compute_operator_work({"aten::mm", "[[4, -8], [-8, 16]]", two, "", ""}));
  EXPECT_FALSE(compute_operator_work({"aten::mm", "[[4, 8]]", two, "", ""}));
  EXPECT_FALSE(compute_operator_work({"aten::mm", "[[4, 8], [8, 16]]", "", "", ""}));
  EXPECT_FALSE(compute_operator_work({"aten::mm", "not json", two, "", ""}));
  EXPECT_FALSE(compute_operator_work({"aten::mm", "{}", "7", "", ""}));
  EXPECT_FALSE(
      compute_operator_work({"aten::mm", "[[4, 8], [8, 16]]",
                             R"(["c10::complex<float>", "c10::complex<float>"])", "", ""}));
  EXPECT_FALSE(compute_operator_work({"aten::add", "[[2, 3], [4, 3]]", two, "", ""}));
  EXPECT_FALSE(compute_operator_work({"aten::nonzero", "[[8]]", R"(["float"])", "", ""}));
  EXPECT_FALSE(compute_operator_work({"mine::mm", "[[4, 8], [8, 16]]", two, "", ""}));
  EXPECT_FALSE(compute_operator_work(
      {"aten::mm", "[[9223372036854775807, 1], [1, 9223372036854775807]]", two, "", ""}));
}

// No shape that a hostile file can hold overflows anything.
TEST(OperatorWorkTest, SurvivesHugeSizes) {
  const char* two = R"(["float", "float"])";
  const auto work = compute_operator_work(
      {"aten::bmm", "[[9223372036854775807, 1, 2], [9223372036854775807, 2, 1]]", two, "", ""});
  EXPECT_FALSE(work);
  EXPECT_GT(
      work_of({"aten::add", "[[9223372036854775807, 9223372036854775807], []]", two, "", ""}).bytes,
      1e30);
  EXPECT_FALSE(compute_operator_work(
      {"aten::convolution", "[[1, 1, 9223372036854775807, 1], [1, 1, 1, 1], [1]]", kConvTypes, "",
       R"(["", "", "", "[1, 1]", "[9223372036854775807, 1]", "[1, 1]", "False", "[0, 0]", "1"])"}));
}

// Windows of 4 with a step of 1 over a row of 16: 13 windows, of which each number is counted once.
TEST(OperatorWorkTest, CountsOverlappingWindowsOnce) {
  const auto windows = [](const char* strides) {
    return work_of({"aten::copy_", "[[13, 4], [13, 4], []]", R"(["float", "float", "Scalar"])",
                    strides, ""})
        .bytes;
  };
  EXPECT_EQ(windows("[[4, 1], [1, 1], []]"), 4 * (13 * 4 + 16));
  EXPECT_EQ(windows("[[4, 1], [4, 1], []]"), 4 * (13 * 4 + 13 * 4));
  // Every second row of a larger matrix: what lies between is not read.
  EXPECT_EQ(windows("[[4, 1], [8, 1], []]"), 4 * (13 * 4 + 13 * 4));
}

}  // namespace
}  // namespace lanescope::analysis
