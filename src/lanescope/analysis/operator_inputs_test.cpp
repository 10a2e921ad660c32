#include "lanescope/analysis/operator_inputs.h"

#include <gtest/gtest.h>

#include "lanescope/analysis/close_names.h"

namespace lanescope::analysis {
namespace {

TEST(OperatorInputsTest, ShapesReadAsTorchPrintsThem) {
  EXPECT_EQ(torch_shapes_text("[[4,8],[],[]]"), "[[4, 8], [], []]");
  EXPECT_EQ(torch_shapes_text("[[[2, 3], [4]], [1]]"), "[[], [1]]");  // a list of tensors
  EXPECT_EQ(torch_shapes_text(""), "[]");
  EXPECT_EQ(torch_shapes_text("[[4, 8], ["), "[]");
}

TEST(OperatorInputsTest, ProductsCountTwoOperationsAMultiplyAndAdd) {
  EXPECT_EQ(count_flops({"aten::mm", "[[4, 8], [8, 16]]", R"(["float", "float"])", ""}),
            2u * 4 * 8 * 16);
  EXPECT_EQ(count_flops({"aten::addmm", "[[16], [4, 8], [8, 16], [], []]", "", ""}), 1024u);
  EXPECT_EQ(count_flops({"aten::bmm", "[[3, 4, 8], [3, 8, 16]]", "", ""}), 3u * 1024);
  EXPECT_EQ(count_flops({"aten::baddbmm", "[[3, 4, 16], [3, 4, 8], [3, 8, 16]]", "", ""}),
            3u * 1024);
  EXPECT_EQ(count_flops({"aten::mul", "[[4, 8], []]", R"(["float", "Scalar"])", ""}), 32u);
  EXPECT_EQ(count_flops({"aten::add", "[[], []]", R"(["float", "float"])", ""}), 1u);
}

// 1x3x20x20 by 8x3x3x3, stride 2, padding 1: output 10x10. 2 * 10 * 10 * 3 * 3 * 3 * 8 = 43200.
TEST(OperatorInputsTest, ConvolutionNeedsItsConcreteInputs) {
  const char* dims = "[[1, 3, 20, 20], [8, 3, 3, 3], [8], [], [], [], []]";
  EXPECT_EQ(
      count_flops({"aten::conv2d", dims, "", R"(["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "1"])"}),
      43200u);
  EXPECT_EQ(
      count_flops({"aten::conv2d", dims, "", R"(["", "", "", "[2, 2]", "same", "[1, 1]", "1"])"}),
      0u);
  EXPECT_EQ(
      count_flops({"aten::conv2d", dims, "", R"(["", "", "", "[0, 2]", "[1, 1]", "[1, 1]", "1"])"}),
      0u);
  EXPECT_EQ(count_flops({"aten::conv2d", dims, "", ""}), 0u);
}

TEST(OperatorInputsTest, WhatCannotBeCountedIsZero) {
  EXPECT_EQ(count_flops({"aten::mm", "[[4, 0], [0, 16]]", "", ""}), 0u);
  EXPECT_EQ(count_flops({"aten::bmm", "[[0, 4, 8], [0, 8, 16]]", "", ""}), 0u);
  EXPECT_EQ(count_flops({"aten::mm", "[[4, 8]]", "", ""}), 0u);
  EXPECT_EQ(count_flops({"aten::mm", "not json", "", ""}), 0u);
  EXPECT_EQ(count_flops({"aten::softmax", "[[4, 8]]", "", ""}), 0u);
}

TEST(CloseNamesTest, NamesThatContainTheTextComeBeforeMisspelledOnes) {
  const std::vector<std::string_view> names{"aten::mm", "aten::matmul", "aten::addmm",
                                            "cudaLaunchKernel", "aten::add"};
  EXPECT_EQ(find_close_names("matmul", names), (std::vector<std::string>{"aten::matmul"}));
  EXPECT_EQ(find_close_names("aten::matmull", names), (std::vector<std::string>{"aten::matmul"}));
  EXPECT_TRUE(find_close_names("zzz", names).empty());
}

}  // namespace
}  // namespace lanescope::analysis
