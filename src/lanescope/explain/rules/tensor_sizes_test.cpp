#include "lanescope/explain/rules/tensor_sizes.h"

#include <gtest/gtest.h>

#include <string_view>

namespace lanescope::explain::rules {
namespace {

using analysis::Sizes;
using analysis::TensorArguments;

std::optional<Sizes> made(std::string_view op, std::string_view dims,
                          std::string_view concrete = "") {
  return made_size(op, TensorArguments({op, dims, R"(["float", "float", "float"])", "", concrete}));
}

double kept(std::string_view op, std::string_view dims, std::string_view types,
            std::string_view concrete) {
  const auto taken = taken_of(op, TensorArguments({op, dims, types, "", concrete}), 0);
  return taken ? taken->elements : -1;
}

TEST(TensorSizesTest, KnowsProducts) {
  EXPECT_EQ(made("aten::linear", "[[4, 64, 32], [1000, 32], [1000]]"), (Sizes{4, 64, 1000}));
  EXPECT_EQ(made("aten::matmul", "[[80, 201], [16, 201, 50], []]"), (Sizes{16, 80, 50}));
  EXPECT_EQ(made("aten::matmul", "[[16, 80, 201], [201], []]"), (Sizes{16, 80}));
  EXPECT_EQ(made("aten::addmm", "[[7], [5, 3], [3, 7]]"), (Sizes{5, 7}));
  EXPECT_EQ(made("aten::mm", "[[5, 3], [4, 7], []]"), std::nullopt);
}

TEST(TensorSizesTest, KnowsWhatBroadcastsRepeatsAndCompares) {
  EXPECT_EQ(made("aten::sub", "[[8, 1, 2], [1, 9, 2], []]"), (Sizes{8, 9, 2}));
  EXPECT_EQ(made("aten::cdist", "[[3, 8, 2], [3, 9, 2], []]"), (Sizes{3, 8, 9}));
  EXPECT_EQ(made("aten::kron", "[[8, 2], [3, 4], []]"), (Sizes{24, 8}));
  EXPECT_EQ(made("aten::one_hot", "[[8, 4], [], []]", R"(["", "10", ""])"), (Sizes{8, 4, 10}));
  EXPECT_EQ(made("aten::outer", "[[8], [9], []]"), (Sizes{8, 9}));
  EXPECT_EQ(made("aten::repeat", "[[8, 2], [], []]", R"(["", "[3, 1, 5]", ""])"),
            (Sizes{3, 8, 10}));
  EXPECT_EQ(made("aten::conv2d", "[[8, 3, 9, 9], [4, 3, 3, 3], []]"), std::nullopt);
}

TEST(TensorSizesTest, KnowsWhatIsKept) {
  constexpr std::string_view kOne = R"(["float", "Scalar", "Scalar", "Scalar", "Scalar"])";
  const std::string_view dims = "[[10, 20, 30], [], [], [], []]";
  EXPECT_EQ(kept("aten::sum", dims, kOne, R"(["", "[-1]", "False", "", ""])"), 200);
  EXPECT_EQ(kept("aten::sum", dims, kOne, R"(["", "[0, 1]", "False", "", ""])"), 30);
  EXPECT_EQ(kept("aten::sum", dims, kOne, R"(["", "", "", "", ""])"), 1);
  EXPECT_EQ(kept("aten::argmax", dims, kOne, R"(["", "1", "False", "", ""])"), 300);
  EXPECT_EQ(kept("aten::linalg_vector_norm", dims, kOne, R"(["", "2", "[2]", "", ""])"), 200);
  EXPECT_EQ(kept("aten::topk", dims, kOne, R"(["", "3", "-1", "True", "True"])"), 600);
  EXPECT_EQ(kept("aten::select", dims, kOne, R"(["", "1", "-1", "", ""])"), 300);
  EXPECT_EQ(kept("aten::slice", dims, kOne, R"(["", "2", "0", "9223372036854775807", "16"])"), 400);
  EXPECT_EQ(kept("aten::index_select", "[[10, 20], [], [3]]", R"(["float", "Scalar", "long int"])",
                 R"(["", "0", ""])"),
            60);
  EXPECT_EQ(kept("aten::gather", "[[10, 20], [], [10, 1]]", R"(["float", "Scalar", "long int"])",
                 R"(["", "1", ""])"),
            10);
  EXPECT_EQ(kept("aten::max", "[[10], [10]]", R"(["float", "float"])", ""), -1);  // of two tensors
  EXPECT_EQ(kept("aten::relu", dims, kOne, ""), -1);
}

}  // namespace
}  // namespace lanescope::explain::rules
