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

// cuDNN copies scattered weights first. Only these copies are the cost, not the cells: 60 of 360 us.
TEST(OperatorRowsTest, CountsOnlyTheCopiesOfScatteredWeights) {
  const auto with = [](const char* first) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op("aten::_cudnn_rnn").kernel(first, 60).kernel("cells", 300).end();
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return find_by_rule(program.trace(), "costly-operator");
  };
  const auto finding = with("Memcpy DtoD (Device -> Device)");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(60));
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("flatten_parameters()"));
  EXPECT_FALSE(with("gemm"));
}

// A blur of 31 x 31 for each of three channels; a usual depthwise filter is 3 x 3.
TEST(OperatorRowsTest, SeesLargeFiltersOfOneChannel) {
  const auto with = [](const char* dims, const char* groups) {
    return action_of(step_with_inputs(
        "aten::conv2d",
        inputs(dims,
               R"(["float", "float", "", "ScalarList", "ScalarList", "ScalarList", "Scalar"])", "",
               std::string(R"(["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", ")") + groups + R"("])")));
  };
  EXPECT_THAT(with("[[8, 3, 64, 64], [3, 1, 31, 31], [], [], [], [], []]", "3"),
              ::testing::HasSubstr("separable"));
  EXPECT_EQ(with("[[8, 3, 64, 64], [3, 1, 3, 3], [], [], [], [], []]", "3"), "");
  EXPECT_EQ(with("[[8, 3, 64, 64], [64, 3, 31, 31], [], [], [], [], []]", "1"), "");
}

// 4,000 lookups in a table of 1,000 rows, and their product. The same product of 3,000 or of other rows.
TEST(OperatorRowsTest, SeesProductsOfRepeatedRows) {
  const auto with = [](const char* lookup, const char* rows) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op(lookup, inputs("[[1000, 64], []]", R"(["float", ""])", "", R"(["", ""])"));
      p.kernel("index", 20).end();
      p.begin_op("aten::linear", inputs(rows, R"(["float", "float"])", "", R"(["", ""])"));
      p.kernel("gemm", 300).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(with("aten::index", "[[4000, 64], [64, 64]]"), ::testing::HasSubstr("table first"));
  EXPECT_EQ(with("aten::index", "[[3000, 64], [64, 64]]"), "");
  EXPECT_EQ(with("aten::relu", "[[4000, 64], [64, 64]]"), "");
}

std::string after(const char* before, const testing::Fields& its, const char* op,
                  const testing::Fields& inputs_of_op) {
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    p.begin_op(before, its).kernel("k", 20).end();
    p.begin_op(op, inputs_of_op).kernel("gemm", 300).end();
  });
  return action_of(program.trace());
}

TEST(OperatorRowsTest, SeesProductsWithDiagonalMatrices) {
  const auto product = inputs("[[64, 64], [64, 32]]", R"(["float", "float"])", "", R"(["", ""])");
  const auto vector = inputs("[[64], []]", R"(["float", "Scalar"])", "", R"(["", "0"])");
  EXPECT_THAT(after("aten::diag", vector, "aten::matmul", product),
              ::testing::HasSubstr("d[:, None]"));
  EXPECT_EQ(after("aten::relu", vector, "aten::matmul", product), "");
  const auto other = inputs("[[32], []]", R"(["float", "Scalar"])", "", R"(["", "0"])");
  EXPECT_EQ(after("aten::diag", other, "aten::matmul",
                  inputs("[[64, 64], [64, 64]]", R"(["float", "float"])", "", R"(["", ""])")),
            "");
}

// (A B) x with 64 x 64 matrices and one column: 64^3 + 64^2 multiplications, and 2 x 64^2 the other way.
TEST(OperatorRowsTest, SeesProductsInTheLongOrder) {
  const auto both = [](const char* second) {
    ProgramSketch drawn;
    drawn.steps(6, [&](ProgramSketch& p) {
      p.begin_op("aten::matmul",
                 inputs("[[64, 64], [64, 64]]", R"(["float", "float"])", "", R"(["", ""])"));
      p.kernel("gemm", 300).end();
      p.begin_op("aten::matmul", inputs(second, R"(["float", "float"])", "", R"(["", ""])"));
      p.kernel("gemm", 20).end();
    });
    return action_of(drawn.trace());
  };
  EXPECT_THAT(both("[[64, 64], [64, 1]]"), ::testing::HasSubstr("A @ (B @ x)"));
  EXPECT_EQ(both("[[64, 64], [64, 64]]"), "");
}

// Taps of a filter, and a stride: a patch embedding takes long steps.
TEST(OperatorRowsTest, SeesLongFilters) {
  const auto with = [](const char* taps, const char* stride) {
    return action_of(step_with_inputs(
        "aten::conv1d",
        inputs(std::string("[[8, 1, 9000], [1, 1, ") + taps + "], [], [], [], [], []]",
               R"(["float", "float", "", "ScalarList", "ScalarList", "ScalarList", "Scalar"])", "",
               std::string(R"(["", "", "", "[)") + stride + R"(]", "[0]", "[1]", "1"])")));
  };
  EXPECT_THAT(with("256", "1"), ::testing::HasSubstr("rfft"));
  EXPECT_EQ(with("255", "1"), "");
  EXPECT_EQ(with("256", "256"), "");
}

TEST(OperatorRowsTest, SeesSmoothedLabelsThatAreFilledIn) {
  const auto target =
      inputs("[[512, 1000], [], [512, 1], []]", R"(["float", "Scalar", "long int", "Scalar"])", "",
             R"(["", "1", "", "0.9"])");
  const auto loss =
      inputs("[[512, 1000], [512, 1000], [], []]", R"(["float", "float", "Scalar", "Scalar"])", "",
             R"(["", "", "2", "False"])");
  EXPECT_THAT(after("aten::scatter_", target, "aten::kl_div", loss),
              ::testing::HasSubstr("label_smoothing"));
  EXPECT_EQ(after("aten::softmax", target, "aten::kl_div", loss), "");
}

// Classes in the middle of [8, 1000, 512]: the next one is 512 elements away. Forward and backward are one fault, 160 us.
TEST(OperatorRowsTest, AddsABackwardPartThatGoesAcrossRowsToo) {
  const auto with = [](const char* dim) {
    const std::string dims = "[8, 1000, 512]", strides = "[512000, 512, 1]";
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op(
          "aten::_log_softmax",
          inputs("[" + dims + ", [], []]", R"(["float", "Scalar", "Scalar"])",
                 "[" + strides + ", [], []]", std::string(R"(["", ")") + dim + R"(", "False"])"));
      p.kernel("softmax", 100).end();
      p.begin_op("aten::_log_softmax_backward_data",
                 inputs("[" + dims + ", " + dims + ", [], []]",
                        R"(["float", "float", "Scalar", "Scalar"])",
                        "[" + strides + ", " + strides + ", [], []]",
                        std::string(R"(["", "", ")") + dim + R"(", "6"])"));
      p.kernel("softmax_backward", 60).end();
    });
    return find_by_rule(program.trace(), "costly-operator");
  };
  const auto across = with("1");
  ASSERT_TRUE(across);
  EXPECT_EQ(across->at_stake_ns, us(160));
  EXPECT_FALSE(with("2"));
}

// [8, 1000, 512] as a view of [8, 512, 1000]: classes lie side by side, and torch takes its kernel for inner dimensions.
TEST(OperatorRowsTest, KnowsTheSoftmaxOfAnInnerDimension) {
  const auto with = [](const char* dims, const char* dim, const char* kernel) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op(
          "aten::_log_softmax",
          inputs("[" + std::string(dims) + ", [], []]", R"(["float", "Scalar", "Scalar"])",
                 "[[512000, 1, 1000], [], []]", std::string(R"(["", ")") + dim + R"(", "False"])"));
      p.kernel(kernel, 100).end();
    });
    return find_by_rule(program.trace(), "costly-operator");
  };
  const auto inner = with("[8, 1000, 512]", "1", "cunn_SpatialSoftMaxForward<float>");
  ASSERT_TRUE(inner);
  EXPECT_EQ(inner->at_stake_ns, us(100));
  EXPECT_FALSE(with("[8, 1000, 512]", "1", "softmax_warp_forward"));
  EXPECT_FALSE(
      with("[8, 21, 512]", "1", "cunn_SpatialSoftMaxForward<float>"));  // pixels of few classes
}

TEST(OperatorRowsTest, KnowsAWholeSpectrumOfRealNumbers) {
  const auto with = [](const char* type) {
    return action_of(step_with_inputs(
        "aten::fft_fft",
        inputs("[[64, 1024], [], [], []]", std::string(R"([")") + type + R"(", "", "Scalar", ""])",
               "", R"(["", "", "-1", ""])")));
  };
  EXPECT_THAT(with("float"), ::testing::HasSubstr("torch.fft.rfft"));
  EXPECT_EQ(with("c10::complex<float>"), "");
}

// 300 us of a call and 10 us of the one after it, with 100 us of other work.
std::string action_before(const char* op, const testing::Fields& call, const char* next_op,
                          const testing::Fields& next, const char* later_op = "aten::mm",
                          const testing::Fields& later = {}) {
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    p.begin_op(op, call).kernel("k", 300).end();
    p.begin_op(next_op, next).kernel("k2", 10).end();
    p.begin_op(later_op, later).kernel("gemm", 100).end();
  });
  return action_of(program.trace());
}

// Histories of 64 words, as rows of 128: [2048, 64, 128].
TEST(OperatorRowsTest, SeesRowsThatAreOnlyAddedUp) {
  const auto lookup = inputs("[[100000, 128], [2048, 64], [], [], []]",
                             R"(["float", "long int", "Scalar", "Scalar", "Scalar"])", "",
                             R"(["", "", "-1", "False", "False"])");
  const auto over = [](const char* dim) {
    return inputs("[[2048, 64, 128], [], [], []]", R"(["float", "ScalarList", "Scalar", ""])", "",
                  std::string(R"(["", "[)") + dim + R"(]", "False", ""])");
  };
  EXPECT_THAT(action_before("aten::embedding", lookup, "aten::sum", over("1")),
              ::testing::HasSubstr("EmbeddingBag"));
  EXPECT_THAT(action_before("aten::embedding", lookup, "aten::mean", over("-2")),
              ::testing::HasSubstr("EmbeddingBag"));
  EXPECT_EQ(action_before("aten::embedding", lookup, "aten::sum", over("2")), "");
  EXPECT_EQ(action_before("aten::embedding", lookup, "aten::mul", over("1")), "");
}

TEST(OperatorRowsTest, SeesASoftmaxThatOnlyArgmaxReads) {
  const auto scores =
      inputs("[[64, 1000], [], []]", R"(["float", "Scalar", ""])", "", R"(["", "1", ""])");
  EXPECT_THAT(action_before("aten::softmax", scores, "aten::argmax", scores),
              ::testing::HasSubstr("argmax of the scores"));
  EXPECT_EQ(action_before("aten::softmax", scores, "aten::max", scores), "");
  // The probabilities are read as well.
  EXPECT_EQ(action_before("aten::softmax", scores, "aten::argmax", scores, "aten::log", scores),
            "");
}

TEST(OperatorRowsTest, SeesASortInTheBackwardPartOfAnIndex) {
  const auto action = [](const char* node) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op(node).begin_op("aten::_index_put_impl_");
      p.kernel("indexing_backward_kernel<float>", 300).end().end();
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action("IndexBackward0"), ::testing::HasSubstr("index_select(0, index)"));
  EXPECT_EQ(action("aten::index_copy_"), "");
}

// [1024, 8, 1, 128] times [8, 128, 128]: each matrix is copied 1,024 times.
TEST(OperatorRowsTest, SeesMatricesThatAProductCopies) {
  const auto action = [](const char* dims, const char* inside) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op("aten::matmul", inputs(dims, R"(["float", "float"])", "", R"(["", ""])"));
      p.begin_op(inside).kernel("copy", 300).end().end();
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return action_of(program.trace());
  };
  constexpr char kRepeated[] = "[[1024, 8, 1, 128], [8, 128, 128]]";
  EXPECT_THAT(action(kRepeated, "aten::clone"), ::testing::HasSubstr("torch.einsum"));
  EXPECT_EQ(action(kRepeated, "aten::bmm"), "");
  EXPECT_EQ(action("[[1024, 8, 1, 128], [128, 128]]", "aten::clone"), "");
  EXPECT_EQ(action("[[1024, 8, 1, 128], [1024, 8, 128, 128]]", "aten::clone"), "");
}

TEST(OperatorRowsTest, SeesTheGradientOfImages) {
  const auto with = [](const char* channels, const char* mask) {
    return action_of(step_with_inputs(
        "aten::convolution_backward",
        inputs(
            "[[8, 64, 28, 28], [8, " + std::string(channels) + ", 56, 56], [64, " + channels +
                ", 3, 3], [], [], [], [], [], [], [], []]",
            R"(["float", "float", "float", "ScalarList", "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar", "ScalarList"])",
            "",
            std::string(
                R"(["", "", "", "[0]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", ")") +
                mask + R"("])")));
  };
  EXPECT_THAT(with("3", "[True, True, False]"), ::testing::HasSubstr("images.detach()"));
  EXPECT_EQ(with("3", "[False, True, False]"), "");
  EXPECT_EQ(with("3", "[True, False, False]"), "");  // an attack on the model: images only
  EXPECT_EQ(with("64", "[True, True, False]"), "");
}

// Flash attention takes 16-bit types only.
TEST(OperatorAdviceRowsTest, SeesAttentionInFloat32) {
  const auto with = [](const char* type) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op("aten::_scaled_dot_product_efficient_attention",
                 inputs("[[8, 16, 1024, 64]]", type, "", ""));
      p.kernel("fmha_cutlassF_f32_aligned_64x64_rf_sm80", 300).end();
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(with(R"(["float"])"), ::testing::HasSubstr("bfloat16"));
  EXPECT_EQ(with(R"(["c10::BFloat16"])"), "");
}

TEST(OperatorAdviceRowsTest, SeesProductsWithALargeSquare) {
  const auto inside = [](const char* op) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < 2; ++i) {
        p.begin_op("aten::matmul",
                   inputs("[[8192, 8192], [8192, 256]]", R"(["float", "float"])", "", ""));
        p.begin_op(op).kernel("k", 300).end().end();
      }
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(inside("aten::mm"), ::testing::HasSubstr("mostly zeros"));
  EXPECT_EQ(inside("aten::_sparse_mm"), "");
  EXPECT_EQ(inside("aten::crow_indices"), "");
  const auto with = [](const char* dims) {
    return action_of(
        step_with_inputs("aten::matmul", inputs(dims, R"(["float", "float"])", "", ""), 2));
  };
  EXPECT_THAT(with("[[8192, 8192], [8192, 256]]"), ::testing::HasSubstr("mostly zeros"));
  EXPECT_EQ(with("[[8192, 8192], [8192, 1]]"), "");
  EXPECT_EQ(with("[[8192, 8192], [8192, 4096]]"), "");
  EXPECT_EQ(with("[[1024, 1024], [1024, 16]]"), "");
}

// The matrix of all pairs is large and square, but not of zeros.
TEST(OperatorAdviceRowsTest, KnowsKroneckerProducts) {
  const auto action = [](const char* before) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      const char* types = R"(["float", "float"])";
      for (int i = 0; i < 2; ++i) {
        p.begin_op(before, inputs("[[64, 64], [64, 64]]", types, "", "")).kernel("mul", 20).end();
        p.begin_op("aten::matmul", inputs("[[4096, 4096], [4096, 64]]", types, "", ""));
        p.kernel("gemm", 300).end();
      }
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action("aten::kron"), ::testing::HasSubstr("by factors"));
  EXPECT_THAT(action("aten::mul"), ::testing::HasSubstr("mostly zeros"));
}

// 512 rows for each of 256 users, or one for each.
TEST(OperatorAdviceRowsTest, SeesRowsThatExpandRepeats) {
  const auto action = [](const char* table) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      const char* types = R"(["float", "float", "float"])";
      p.begin_op("aten::expand", inputs(table, types, "", "")).end();
      p.begin_op("aten::flatten", inputs("[[256, 512, 64]]", types, "", "")).kernel("copy", 20);
      p.end();
      p.begin_op("aten::linear", inputs("[[131072, 64], [64, 64], [64]]", types, "", ""));
      p.kernel("gemm", 300).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action("[[1, 512, 64]]"), ::testing::HasSubstr("expand the result"));
  EXPECT_EQ(action("[[256, 512, 64]]"), "");
}

TEST(OperatorAdviceRowsTest, SeesCountsByOneHotTensors) {
  const auto action = [](const char* first, const char* type) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op(first, inputs("[[8, 256, 256], []]", R"(["long int", "Scalar"])", "", ""));
      p.kernel("scatter", 20).end();
      p.begin_op("aten::sum", inputs("[[8, 256, 256, 64], []]", type, "", ""));
      p.kernel("reduce", 300).end();
    });
    return action_of(program.trace());
  };
  constexpr char kLong[] = R"(["long int", "Scalar"])";
  EXPECT_THAT(action("aten::one_hot", kLong), ::testing::HasSubstr("bincount"));
  EXPECT_EQ(action("aten::gather", kLong), "");
  EXPECT_EQ(action("aten::one_hot", R"(["float", "Scalar"])"), "");
}

}  // namespace
}  // namespace lanescope::explain
