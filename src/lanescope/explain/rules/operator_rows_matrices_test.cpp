// Rows for products and transforms, each with a call that is no fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "lanescope/explain/rules/drawn_operators_test.h"

namespace lanescope::explain {
namespace {

// A thousand texts with a thousand pictures, or each text with its own.
TEST(MatrixRowsTest, SeesSimilaritiesOfAllPairs) {
  const auto with = [](const char* dims) {
    return action_of(step_with_inputs("aten::cosine_similarity",
                                      inputs(dims, R"(["float", "float", "Scalar"])", "", "")));
  };
  EXPECT_THAT(with("[[1000, 1, 64], [1, 1000, 64], []]"), ::testing::HasSubstr("one product"));
  EXPECT_EQ(with("[[1000, 64], [1000, 64], []]"), "");
  // One text with all pictures: these may be normalized once.
  EXPECT_THAT(with("[[1000, 64], [1, 64], []]"), ::testing::StartsWith("If one stays the same"));
}

// 4,000 lookups in a table of 1,000 rows, and their product. The same product of 3,000 or of other rows.
TEST(MatrixRowsTest, SeesProductsOfRepeatedRows) {
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

TEST(MatrixRowsTest, SeesProductsWithDiagonalMatrices) {
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

// The trace of A B, whose matrix nothing else takes. If A is as large as the product, a later call may take A.
TEST(MatrixRowsTest, SeesProductsOfWhichOnlyTheDiagonalIsRead) {
  const auto with = [](const char* factors, const char* reader, const char* later,
                       const char* op = "aten::matmul") {
    constexpr char kTwoFloats[] = R"(["float", "float"])";
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op(op, inputs(factors, kTwoFloats, "", R"(["", ""])"));
      p.kernel("gemm", 300).end();
      p.begin_op(reader, inputs("[[64, 64]]", R"(["float"])", "", R"([""])"));
      p.kernel("trace", 5).end();
      p.begin_op("aten::linalg_vector_norm", inputs(later, R"(["float"])", "", R"([""])"));
      p.kernel("norm", 5).end();
    });
    return action_of(program.trace());
  };
  constexpr char kLong[] = "[[64, 512], [512, 64]]";
  const auto names_the_sum = ::testing::HasSubstr("(A * B.T).sum()");
  EXPECT_THAT(with(kLong, "aten::trace", "[[64, 512]]"), names_the_sum);
  EXPECT_THAT(with(kLong, "aten::diagonal", "[[64, 512]]"), names_the_sum);
  EXPECT_THAT(with(kLong, "aten::trace", "[[64, 512]]", "aten::mm"), names_the_sum);
  EXPECT_THAT(with("[[64, 64], [64, 64]]", "aten::trace", "[[64, 64]]"), names_the_sum);
  EXPECT_EQ(with(kLong, "aten::trace", "[[64, 64]]"), "");
  EXPECT_EQ(with(kLong, "aten::sum", "[[64, 512]]"), "");
  EXPECT_EQ(with("[[64, 512], [512, 32]]", "aten::trace", "[[64, 512]]"), "");
}

// (A B) x with 64 x 64 matrices and one column: 64^3 + 64^2 multiplications, and 2 x 64^2 the other way.
TEST(MatrixRowsTest, SeesProductsInTheLongOrder) {
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

TEST(MatrixRowsTest, KnowsAWholeSpectrumOfRealNumbers) {
  const auto with = [](const char* type) {
    return action_of(step_with_inputs(
        "aten::fft_fft",
        inputs("[[64, 1024], [], [], []]", std::string(R"([")") + type + R"(", "", "Scalar", ""])",
               "", R"(["", "", "-1", ""])")));
  };
  EXPECT_THAT(with("float"), ::testing::HasSubstr("torch.fft.rfft"));
  EXPECT_EQ(with("c10::complex<float>"), "");
}

// [1024, 8, 1, 128] times [8, 128, 128]: each matrix is copied 1,024 times.
TEST(MatrixRowsTest, SeesMatricesThatAProductCopies) {
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

TEST(MatrixRowsTest, SeesProductsWithALargeSquare) {
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
TEST(MatrixRowsTest, KnowsKroneckerProducts) {
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
TEST(MatrixRowsTest, SeesRowsThatExpandRepeats) {
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

// One weight, made again at each access, or matrices of the program.
TEST(MatrixRowsTest, TellsWeightsThatAreMadeAgainFromMatrices) {
  const auto action = [](const char* frame, int calls) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      const std::int64_t start = p.cpu_us();
      for (int i = 0; i < calls; ++i) {
        p.begin_op("aten::_linalg_solve_ex",
                   inputs("[[256, 256], [256, 256]]", R"(["float", "float"])", "", ""));
        p.kernel("getrf", 300).end();
      }
      program.sketch().slice("python_function", frame, us(start), us(p.cpu_us() - start));
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return action_of(program.trace());
  };
  constexpr char kAccess[] = "torch/nn/utils/parametrize.py(400): get_parametrized";
  EXPECT_THAT(action(kAccess, 4), ::testing::HasSubstr("parametrize.cached()"));
  EXPECT_EQ(action(kAccess, 1), "");
  EXPECT_EQ(action("solver.py(4): solve", 4), "");
  EXPECT_THAT(action("solver.py(4): solve", 8), ::testing::HasSubstr("Independent ones"));
}

// In inference the plain weight does; a model that trains has a new one in each step.
TEST(MatrixRowsTest, KeepsThePlainWeightWhereNothingTrains) {
  const auto action = [](bool trains, int calls) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < calls; ++i) p.begin_op("aten::_weight_norm").kernel("norm", 100).end();
      p.begin_op("aten::conv1d").kernel("conv", 100).end();
      if (trains)
        p.begin_op("autograd::engine::evaluate_function: ConvolutionBackward0")
            .kernel("dgrad", 100)
            .end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action(false, 4), ::testing::HasSubstr("remove_weight_norm"));
  EXPECT_THAT(action(true, 4), ::testing::HasSubstr("parametrize.cached()"));
  EXPECT_EQ(action(false, 1), "");
}

// 2,048 rows and one weight, which expand() repeats; weights of their own; enough rows for each product.
TEST(MatrixRowsTest, SeesOneWeightMultipliedRowByRow) {
  const auto with = [](const char* dims, const char* strides) {
    return action_of(step_with_inputs(
        "aten::bmm", inputs(dims, R"(["float", "float"])", strides, R"(["", ""])")));
  };
  constexpr char kRows[] = "[[2048, 1, 512], [2048, 512, 512]]";
  EXPECT_THAT(with(kRows, "[[512, 512, 1], [0, 512, 1]]"), ::testing::HasSubstr("F.linear"));
  EXPECT_THAT(with("[[2048, 512, 512], [2048, 512, 1]]", "[[0, 512, 1], [512, 1, 1]]"),
              ::testing::HasSubstr("F.linear"));
  EXPECT_EQ(with(kRows, "[[512, 512, 1], [262144, 512, 1]]"), "");
  EXPECT_EQ(with(kRows, ""), "");
  EXPECT_EQ(with("[[2048, 64, 512], [2048, 512, 512]]", "[[32768, 512, 1], [0, 512, 1]]"), "");
}

// Distances of 4,096 rows to 256 rows, [4096, 256].
testing::Fields distances(const char* power = "2.") {
  return inputs("[[4096, 64], [256, 64], [], []]", R"(["float", "float", "Scalar", ""])", "",
                std::string(R"(["", "", ")") + power + R"(", ""])");
}

testing::Fields of_distances(const char* type = "float") {
  return inputs("[[4096, 256], [], []]", std::string("[\"") + type + R"(", "Scalar", "Scalar"])",
                "", R"(["", "1", "False"])");
}

TEST(MatrixRowsTest, TheNearestNeedsNoDistance) {
  EXPECT_THAT(action_before("aten::cdist", distances(), "aten::argmin", of_distances()),
              ::testing::HasSubstr("torch.addmm"));
  // Another use of the distances, another power, another reduction.
  const auto is_general = ::testing::HasSubstr("candidates or a sample");
  EXPECT_THAT(action_before("aten::cdist", distances(), "aten::argmin", of_distances(), "aten::exp",
                            of_distances()),
              is_general);
  EXPECT_THAT(action_before("aten::cdist", distances("1."), "aten::argmin", of_distances()),
              is_general);
  EXPECT_THAT(action_before("aten::cdist", distances(), "aten::min", of_distances()), is_general);
}

TEST(MatrixRowsTest, ADiagonalNeedsNoOtherPairs) {
  const auto square = inputs("[[256, 64], [256, 64], [], []]",
                             R"(["float", "float", "Scalar", ""])", "", R"(["", "", "2.", ""])");
  const auto made = inputs("[[256, 256], [], [], []]", R"(["float", "Scalar", "Scalar", "Scalar"])",
                           "", R"(["", "0", "0", "1"])");
  EXPECT_THAT(action_before("aten::cdist", square, "aten::diagonal", made),
              ::testing::HasSubstr("pairwise_distance"));
  EXPECT_THAT(action_before("aten::cdist", square, "aten::diagonal", made, "aten::exp", made),
              ::testing::HasSubstr("candidates or a sample"));
}

}  // namespace
}  // namespace lanescope::explain
