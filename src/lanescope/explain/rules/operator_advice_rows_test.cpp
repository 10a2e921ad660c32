// Rows that look at more than an operator's name, each with a call that is no fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "lanescope/explain/rules/drawn_operators_test.h"

namespace lanescope::explain {
namespace {

// By a tensor of counts nothing can be expanded; by a number it can.
TEST(OperatorAdviceRowsTest, TellsRepeatsByCountsFromRepeatsByANumber) {
  const auto action = [](const char* dims, const char* size, const char* inside) {
    const auto call = inputs(dims, R"(["float", "long int", "Scalar", "Scalar"])", "",
                             std::string(R"(["", "", "0", ")") + size + R"("])");
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op("aten::repeat_interleave", call).kernel("compute_cuda_kernel<long>", 200);
      p.begin_op(inside).kernel("k", 100).end().end();
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action("[[8, 4], [], [], []]", "", "aten::clone"), ::testing::HasSubstr("expand()"));
  EXPECT_THAT(action("[[8, 4], [8], [], []]", "", "aten::index_select"),
              ::testing::HasSubstr("output_size="));
  EXPECT_EQ(action("[[8, 4], [8], [], []]", "40", "aten::index_select"), "");
}

// The gradient of a table is sorted in the optimizer, a matrix elsewhere.
TEST(OperatorAdviceRowsTest, KnowsWhatIsCoalesced) {
  const auto action = [](bool in_optimizer) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      if (in_optimizer) p.begin("Optimizer.step#SparseAdam.step").pass(1);
      p.begin_op("aten::coalesce").kernel("radix_sort", 300).end();
      if (in_optimizer) p.pass(1).end();
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action(false), ::testing::HasSubstr("once"));
  EXPECT_THAT(action(true), ::testing::HasSubstr("sparse=False"));
}

// A thousand texts with a thousand pictures, or each text with its own.
TEST(OperatorAdviceRowsTest, SeesSimilaritiesOfAllPairs) {
  const auto with = [](const char* dims) {
    return action_of(step_with_inputs("aten::cosine_similarity",
                                      inputs(dims, R"(["float", "float", "Scalar"])", "", "")));
  };
  EXPECT_THAT(with("[[1000, 1, 64], [1, 1000, 64], []]"), ::testing::HasSubstr("one product"));
  EXPECT_EQ(with("[[1000, 64], [1000, 64], []]"), "");
  EXPECT_EQ(with("[[1000, 64], [1, 64], []]"), "");
}

// 65,536 lookups meet every row of a small table; 512 meet a part of a large one.
TEST(OperatorAdviceRowsTest, LeavesTheGradientOfASmallTableDense) {
  const auto with = [](const char* rows) {
    return action_of(
        step_with_inputs("aten::embedding_dense_backward",
                         inputs("[[8192, 8, 128], [8192, 8], [], [], []]",
                                R"(["float", "long int", "Scalar", "Scalar", "Scalar"])", "",
                                std::string(R"(["", "", ")") + rows + R"(", "-1", "False"])")));
  };
  EXPECT_THAT(with("1000000"), ::testing::HasSubstr("sparse=True"));
  EXPECT_EQ(with("4096"), "");
}

// The first step makes the state. A new optimizer makes it in each.
TEST(OperatorAdviceRowsTest, SeesAnOptimizerThatIsMadeAgain) {
  const auto action = [](bool each_step, const char* range) {
    ProgramSketch program;
    int step = 0;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin(range);
      for (int i = 0; i < 20 && (each_step || step == 0); ++i)
        p.begin_op("aten::zeros_like").kernel("fill", 30).end();
      p.end();
      ++step;
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action(true, "Optimizer.step#AdamW.step"), ::testing::HasSubstr("optimizer once"));
  EXPECT_EQ(action(false, "Optimizer.step#AdamW.step"), "");
  EXPECT_EQ(action(true, "my part"), "");
}

// In double precision oneDNN has no convolution to switch to.
TEST(OperatorAdviceRowsTest, SeesConvolutionsWithoutALibrary) {
  const auto with = [](const char* type) {
    return action_of(
        step_with_inputs("aten::_slow_conv2d_forward",
                         inputs("[[8, 4, 8, 8]]", std::string("[\"") + type + "\"]", "", "")));
  };
  EXPECT_THAT(with("float"), ::testing::HasSubstr("cudnn.enabled"));
  EXPECT_EQ(with("double"), "");
}

TEST(OperatorAdviceRowsTest, KnowsColumnsOfWindows) {
  EXPECT_THAT(action_of(step_with("aten::im2col", 300)), ::testing::HasSubstr("F.conv2d"));
  EXPECT_EQ(action_of(step_with("aten::unfold", 300)), "");  // a view
}

}  // namespace
}  // namespace lanescope::explain
