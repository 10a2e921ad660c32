#include "lanescope/analysis/tensor_arguments.h"

#include <string>

#include <gtest/gtest.h>

namespace lanescope::analysis {
namespace {

TEST(TensorArgumentsTest, CallsThatDifferInOneTextOnlyAreNotMistakenForEachOther) {
  const OperatorCall first{"aten::mul", "[[2, 3], []]", R"(["float", "Scalar"])", "[[3, 1], []]",
                           R"(["", "2"])"};
  OperatorCall other = first;
  EXPECT_EQ(TensorArguments(first).tensor(0)->type->name, "f32");
  other.types = R"(["double", "Scalar"])";
  EXPECT_EQ(TensorArguments(other).tensor(0)->type->name, "f64");
  other = first;
  other.strides = "[[1, 2], []]";
  EXPECT_EQ(TensorArguments(other).tensor(0)->strides, (Sizes{1, 2}));
  other = first;
  other.concrete = R"(["", "5"])";
  EXPECT_EQ(TensorArguments(other).number(1), 5);
  other = first;
  other.dims = "[[4, 3], []]";
  EXPECT_EQ(TensorArguments(other).tensor(0)->dims, (Sizes{4, 3}));
  EXPECT_EQ(TensorArguments(first).tensor(0)->dims, (Sizes{2, 3}));
  EXPECT_EQ(TensorArguments(first).number(1), 2);
}

TEST(TensorArgumentsTest, TheResultOutlivesTheTextsAndManyOtherCalls) {
  std::string dims = "[[7, 5]]";
  const TensorArguments kept({"aten::neg", dims, R"(["float"])", "[[5, 1]]", R"([""])"});
  dims = "[[1, 1]]";
  for (int i = 0; i < 500; ++i) {
    const std::string each = "[[" + std::to_string(i) + ", 5]]";
    const TensorArguments one({"aten::neg", each, R"(["float"])", "[[5, 1]]", R"([""])"});
    EXPECT_EQ(one.tensor(0)->dims, (Sizes{i, 5}));
  }
  EXPECT_EQ(kept.tensor(0)->dims, (Sizes{7, 5}));
}

TEST(TensorArgumentsTest, ReadsLongTexts) {
  std::string dims = "[", types = "[";
  for (int i = 0; i < 400; ++i) {
    dims += "[" + std::to_string(i) + "], ";
    types += R"("float", )";
  }
  const TensorArguments many({"aten::cat", dims + "[9]]", types + R"("double"])", "", ""});
  EXPECT_EQ(many.tensor(399)->dims, (Sizes{399}));
  EXPECT_EQ(many.tensor(400)->type->name, "f64");
}

}  // namespace
}  // namespace lanescope::analysis
