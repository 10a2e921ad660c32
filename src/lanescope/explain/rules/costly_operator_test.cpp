#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "lanescope/explain/rules/drawn_kernels_test.h"
#include "lanescope/explain/rules/drawn_operators_test.h"
#include "lanescope/explain/rules/operator_advice.h"

namespace lanescope::explain {
namespace {

TEST(CostlyOperatorTest, CountsTheWorkOfTheOperator) {
  const auto finding = find_by_rule(step_with("aten::randperm", 300), "costly-operator");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].text, "aten::randperm");
  EXPECT_EQ(finding->verdict.values[2].integer, 1);  // calls per step
  EXPECT_EQ(finding->arithmetic[0].values[0].integer, us(300));
  EXPECT_EQ(finding->arithmetic[0].values[1].integer, 0);  // the GPU never waits in these calls
  EXPECT_EQ(finding->at_stake_ns, us(300));
}

// What torch's own operator does inside is nothing that the program can change.
TEST(CostlyOperatorTest, IsQuietAboutTheRepeatOfInstanceNorm) {
  EXPECT_TRUE(find_by_rule(step_with("aten::repeat", 300), "costly-operator"));
  EXPECT_FALSE(find_by_rule(step_with("aten::repeat", 300, "copy", "aten::instance_norm"),
                            "costly-operator"));
}

TEST(CostlyOperatorTest, IsQuietWhenItIsASmallPart) {
  EXPECT_TRUE(find_by_rule(step_with("aten::randperm", 12), "costly-operator"));
  EXPECT_FALSE(find_by_rule(step_with("aten::randperm", 7), "costly-operator"));
}

TEST(CostlyOperatorTest, KnowsOnlyItsRows) {
  EXPECT_FALSE(find_by_rule(step_with("aten::cumsum", 300), "costly-operator"));
}

// index_put_ without accumulate runs another kernel, and is no fault.
TEST(CostlyOperatorTest, WantsTheKernelThatIsSlow) {
  EXPECT_TRUE(find_by_rule(step_with("aten::index_put_", 300, "indexing_backward_kernel<float>"),
                           "costly-operator"));
  EXPECT_FALSE(
      find_by_rule(step_with("aten::index_put_", 300, "index_put_kernel"), "costly-operator"));
}

// A few cells are a model; a cell for each time step is a loop. nn.LSTM may call cells itself.
TEST(CostlyOperatorTest, WantsManyCellsThatTheProgramCalled) {
  EXPECT_TRUE(find_by_rule(step_with("aten::lstm_cell", 30, "cell", {}, 8), "costly-operator"));
  EXPECT_FALSE(find_by_rule(step_with("aten::lstm_cell", 30, "cell", {}, 7), "costly-operator"));
  EXPECT_FALSE(
      find_by_rule(step_with("aten::lstm_cell", 30, "cell", "aten::lstm", 8), "costly-operator"));
}

// nn.LSTM has a backward pass of its own, too: 8 cells of 30 us and their nodes of 50 us are 640 us of a step, without the node of
// another operator.
TEST(CostlyOperatorTest, CountsTheBackwardPassOfCells) {
  ProgramSketch program;
  int number = 0;
  program.steps(6, [&](ProgramSketch& p) {
    const int first = number;
    for (int i = 0; i < 8; ++i)
      p.begin_op("aten::lstm_cell", {.sequence = number})
          .begin_op("aten::_thnn_fused_lstm_cell", {.sequence = number++})
          .kernel("cell", 30)
          .end()
          .end();
    p.begin_op("aten::mm", {.sequence = number++}).kernel("gemm", 100).end();
    for (int i = number - 1; i >= first; --i)
      p.begin_op(i == number - 1
                     ? "autograd::engine::evaluate_function: MmBackward0"
                     : "autograd::engine::evaluate_function: ThnnFusedLstmCellBackward0",
                 {.sequence = i, .fwd_thread = 1})
          .kernel("k", 50)
          .end();
  });
  const auto finding = find_by_rule(program.trace(), "costly-operator");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->arithmetic[0].values[0].integer, us(8 * 80));
  EXPECT_EQ(finding->verdict.values[2].integer, 8);  // calls, without nodes
  EXPECT_EQ(finding->spared_calls.size() % 16, 0u);
  EXPECT_TRUE(finding->gain_is_bound);
}

// Messages along 100,000 edges: a lookup of 70 us and a sum of 180, with nodes of 60 and 50 us. A sparse product replaces all of
// them, 360 us, and not another lookup of 40 us and its node of 20.
TEST(CostlyOperatorTest, CountsTheLookupThatASparseProductSparesToo) {
  const auto typed = [](const char* dims, const char* types, int number) {
    testing::Fields fields = inputs(dims, types, "", R"(["", "", "", "", ""])");
    fields.sequence = number;
    return fields;
  };
  constexpr char kLookup[] = R"(["float", "Scalar", "long int"])";
  ProgramSketch program;
  int number = 0;
  program.steps(6, [&](ProgramSketch& p) {
    p.begin_op("aten::index_select", typed("[[5000, 64], [], [1000]]", kLookup, number))
        .kernel("gather", 40)
        .end();
    p.begin_op("aten::relu").kernel("relu", 10).end();
    p.begin_op("aten::index_select", typed("[[5000, 64], [], [100000]]", kLookup, number + 1))
        .kernel("gather", 70)
        .end();
    p.begin_op("aten::index_add_",
               typed("[[5000, 64], [], [100000], [100000, 64], []]",
                     R"(["float", "Scalar", "long int", "float", "Scalar"])", number + 2))
        .kernel("indexFuncLargeIndex", 180)
        .end();
    for (const auto& [node, back, length] :
         {std::tuple("IndexAddBackward0", 2, 50), std::tuple("IndexSelectBackward0", 1, 60),
          std::tuple("IndexSelectBackward0", 0, 20)})
      p.begin_op(std::string("autograd::engine::evaluate_function: ") + node,
                 {.sequence = number + back, .fwd_thread = 1})
          .kernel("k", length)
          .end();
    number += 3;
  });
  const auto finding = find_by_rule(program.trace(), "costly-operator");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->arithmetic[0].values[0].integer, us(70 + 180 + 60 + 50));
  EXPECT_EQ(finding->verdict.values[2].integer, 1);  // sums
  EXPECT_TRUE(finding->gain_is_bound);
}

struct DrawnGraph {
  const char* numbers = "[100000, 1]";        // that scale the rows
  const char* inside_backward = "aten::mul";  // of the product's node
  int put_us = 60;                            // the backward part of x[index]
  const char* function = nullptr;             // around aten::coalesce and 30 us of other work
  const char* beside = "aten::pow";           // that other work
};

// Messages along 100,000 edges: a lookup of 70 us, a product with a number for each of 40, and a sum of 50, with nodes of 50 us, of 30 and
// of `put_us`.
std::optional<Finding> find_messages(const DrawnGraph& drawn = {}) {
  const auto typed = [](const std::string& dims, const char* types, int number) {
    testing::Fields fields = inputs(dims, types, "", R"(["", "", "", "", ""])");
    fields.sequence = number;
    return fields;
  };
  ProgramSketch program;
  int number = 0;
  program.steps(6, [&](ProgramSketch& p) {
    if (drawn.function) {
      const std::int64_t began = p.cpu_us();
      p.begin_op("aten::coalesce").kernel("radix_sort", 80).end();
      p.begin_op(drawn.beside, shapes("[[4096, 64], [64, 64]]", kFloat)).kernel("k", 30).end();
      p.sketch().slice("python_function", drawn.function, ProgramSketch::at(began),
                       us(p.cpu_us() - began));
    }
    p.begin_op("aten::index", typed("[[5000, 64], []]", R"(["float", ""])", number))
        .kernel("gather", 70)
        .end();
    p.begin_op("aten::mul", typed("[[100000, 64], " + std::string(drawn.numbers) + "]",
                                  R"(["float", "float"])", number + 1))
        .kernel("mul", 40)
        .end();
    p.begin_op("aten::index_add_",
               typed("[[5000, 64], [], [100000], [100000, 64], []]",
                     R"(["float", "Scalar", "long int", "float", "Scalar"])", number + 2))
        .kernel("indexFuncLargeIndex", 50)
        .end();
    const auto node = [&](const char* name, int back) {
      p.begin_op(std::string("autograd::engine::evaluate_function: ") + name,
                 {.sequence = number + back, .fwd_thread = 1});
    };
    node("IndexAddBackward0", 2);
    p.kernel("k", 50).end();
    node("MulBackward0", 1);
    p.begin_op(drawn.inside_backward).kernel("k", 30).end().end();
    node("IndexBackward0", 0);
    p.begin_op("aten::_index_put_impl_",
               inputs("[[5000, 64], [], [100000, 64], [], []]",
                      R"(["float", "", "float", "Scalar", "Scalar"])", "", ""))
        .kernel("indexing_backward_kernel", drawn.put_us)
        .end()
        .end();
    p.begin_op("aten::mm").kernel("gemm", 100).end();
    number += 3;
  });
  return find_by_rule(program.trace(), "costly-operator");
}

TEST(CostlyOperatorTest, CountsTheProductWithANumberForEachRow) {
  const auto finding = find_messages();
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("sparse matrix"));
  EXPECT_EQ(finding->arithmetic[0].values[0].integer, us(70 + 40 + 50 + 50 + 30 + 60));
}

// Another product lies between, or the numbers are learned: their gradient needs the rows.
TEST(CostlyOperatorTest, SeesNoSparseProductWhereRowsAreChangedOrNumbersLearned) {
  for (const DrawnGraph& drawn :
       {DrawnGraph{.numbers = "[100000, 64]"}, DrawnGraph{.inside_backward = "aten::sum"}}) {
    const auto finding = find_messages(drawn);
    EXPECT_TRUE(!finding || finding->action.pattern.find("sparse matrix") == std::string::npos);
  }
}

// index_add_ on as many rows takes 50 us in this trace.
TEST(CostlyOperatorTest, ComparesTheBackwardPartsOfLookups) {
  const auto says = [](int put_us) {
    const auto finding = find_messages({.put_us = put_us});
    return finding && finding->try_next.back().find("index_select") != std::string::npos;
  };
  EXPECT_TRUE(says(100));
  EXPECT_FALSE(says(51));
  EXPECT_FALSE(says(30));
}

// What makes the matrix is needed once, with the rest of its function. A function with a layer depends on parameters.
TEST(CostlyOperatorTest, CountsTheFunctionThatMakesTheMatrix) {
  const auto at_stake = [](const DrawnGraph& drawn) {
    const auto finding = find_messages(drawn);
    return finding ? finding->at_stake_ns : 0;
  };
  const std::int64_t messages = at_stake({});
  EXPECT_EQ(at_stake({.function = "train.py(19): normalized"}) - messages, us(80 + 30));
  EXPECT_EQ(at_stake({.function = "train.py(19): normalized", .beside = "aten::linear"}) - messages,
            us(80));
  EXPECT_EQ(at_stake({.function = "torch/nn/modules/module.py(19): forward"}) - messages, us(80));
}

// One kernel joins up to 128 tensors. Long ones move data that has to be moved.
TEST(CostlyOperatorTest, KnowsJoinsOfHundredsOfSmallTensors) {
  const auto action = [](int kernels, std::int64_t us) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op("aten::cat").pass(300);
      for (int i = 0; i < kernels; ++i) p.kernel("CatArrayBatchedCopy<float, 128>", us);
      p.end();
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action(3, 2), ::testing::HasSubstr("take a batch by index"));
  EXPECT_EQ(action(2, 2), "");
  EXPECT_EQ(action(3, 40), "");
}

// topk of long rows sorts: that is its own business.
TEST(CostlyOperatorTest, LeavesSortsOfOtherOperatorsAlone) {
  EXPECT_TRUE(find_by_rule(step_with("aten::sort", 300), "costly-operator"));
  EXPECT_FALSE(
      find_by_rule(step_with("aten::sort", 300, "radix_sort", "aten::topk"), "costly-operator"));
}

// quantile() sorts for itself: the program cannot call topk instead.
TEST(CostlyOperatorTest, KnowsTheSortOfAQuantile) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.begin_op("aten::quantile").begin_op("aten::sort").kernel("radix_sort", 300).end().end();
  });
  EXPECT_THAT(action_of(program.trace()), ::testing::HasSubstr("sample"));
}

// On a GPU the wait for the number of places is what costs, which host-sync reports.
TEST(CostlyOperatorTest, KnowsTheSearchOfAMaskOnACpu) {
  const auto step = [](bool on_gpu) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      if (on_gpu) p.kernel("gemm", 100);
      p.cpu_op("aten::nonzero", 300);
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(step(false), ::testing::HasSubstr("keep the mask"));
  EXPECT_EQ(step(true), "");
}

// A product with eight columns is the fast way to add up rows; with many it is not.
TEST(CostlyOperatorTest, LeavesAOneHotMatrixOfFewClassesAlone) {
  const auto with = [](const char* classes) {
    return action_of(step_with_inputs(
        "aten::one_hot", inputs("[[1000], []]", R"(["long int", "Scalar"])", "[[1], []]",
                                std::string(R"(["", ")") + classes + R"("])")));
  };
  EXPECT_EQ(with("8"), "");
  EXPECT_THAT(with("1000"), ::testing::HasSubstr("F.embedding"));
  EXPECT_THAT(with("-1"), ::testing::HasSubstr("F.embedding"));  // counted on the GPU
}

// 10,000 rows into 8: each waits for 1,250. Into 1,000, or 8 for each, hardly any waits.
TEST(CostlyOperatorTest, SeesAdditionsIntoFewRows) {
  const auto with = [](const char* dims) {
    return action_of(step_with_inputs(
        "aten::index_add_", inputs(dims, R"(["float", "Scalar", "long int", "float", "Scalar"])",
                                   "", R"(["", "0", "", "", "1"])")));
  };
  EXPECT_THAT(with("[[8, 4], [], [10000], [10000, 4], []]"), ::testing::HasSubstr("one_hot"));
  EXPECT_EQ(with("[[1000, 4], [], [10000], [10000, 4], []]"), "");
  EXPECT_EQ(with("[[8, 4], [], [64], [64, 4], []]"), "");
}

// A transposed table: the next element of a row is 256 bytes away.
TEST(CostlyOperatorTest, SeesReadsFromSpreadRows) {
  const auto with = [](const char* strides) {
    return action_of(step_with_inputs(
        "aten::index", inputs("[[64, 32], []]", R"(["float", ""])", strides, R"(["", ""])")));
  };
  EXPECT_THAT(with("[[1, 64], []]"), ::testing::HasSubstr("contiguous"));
  EXPECT_EQ(with("[[32, 1], []]"), "");
  EXPECT_EQ(with("[[64, 2], []]"), "");  // every other element: half of a sector is used
  EXPECT_EQ(with(""), "");
}

// Small matrices one by one make a batch. A large one fills the GPU, and inv has other advice.
TEST(CostlyOperatorTest, StacksSmallMatrices) {
  const auto with = [](const char* dims, int calls) {
    return action_of(step_with_inputs("aten::linalg_inv_ex",
                                      inputs(dims, R"(["float", "Scalar"])", "", ""), calls));
  };
  EXPECT_THAT(with("[[4, 4], []]", 8), ::testing::HasSubstr("torch.stack"));
  EXPECT_EQ(with("[[4, 4], []]", 7), "");
  EXPECT_THAT(with("[[4096, 4096], []]", 8), ::testing::HasSubstr("solve"));
  EXPECT_THAT(with("[[48, 4, 4], []]", 1), ::testing::HasSubstr("solve"));
}

// 8,209 is a prime, 8,232 is 2^3 x 3 x 7^3, 8,128 is 2^6 x 127. A short transform is cheap anyway.
TEST(CostlyOperatorTest, SeesTransformsOfPrimeLengths) {
  const auto forward = [](const char* dims, const char* along) {
    return action_of(step_with_inputs(
        "aten::_fft_r2c", inputs(dims, R"(["float", "ScalarList", "Scalar", "Scalar"])", "",
                                 std::string(R"(["", ")") + along + R"(", "0", "True"])")));
  };
  EXPECT_THAT(forward("[[4, 64, 8209], [], [], []]", "[2]"), ::testing::HasSubstr("Pad"));
  EXPECT_THAT(forward("[[4, 64, 8209], [], [], []]", "[1, 2]"), ::testing::HasSubstr("Pad"));
  EXPECT_EQ(forward("[[4, 8209, 64], [], [], []]", "[2]"), "");  // along the other dimension
  EXPECT_EQ(forward("[[4, 64, 8232], [], [], []]", "[2]"), "");
  EXPECT_EQ(forward("[[4, 64, 8128], [], [], []]", "[2]"), "");
  EXPECT_EQ(forward("[[4, 64, 131], [], [], []]", "[2]"), "");
  const auto back = [](const char* length) {
    return action_of(step_with_inputs(
        "aten::_fft_c2r", inputs("[[4, 4105], [], [], []]",
                                 R"(["c10::complex<float>", "ScalarList", "Scalar", "Scalar"])", "",
                                 std::string(R"(["", "[1]", "2", ")") + length + R"("])")));
  };
  EXPECT_THAT(back("8209"), ::testing::HasSubstr("Pad"));
  EXPECT_EQ(back("8208"), "");
}

// index_add that runs as index_put_ with accumulate: only deterministic algorithms do that.
TEST(CostlyOperatorTest, KnowsDeterministicSums) {
  const auto action = [](std::string_view around) {
    return action_of(step_with("aten::index_put_", 300, "indexing_backward_kernel<float>", around));
  };
  EXPECT_THAT(action("aten::index_add"), ::testing::HasSubstr("use_deterministic_algorithms"));
  EXPECT_THAT(action({}), ::testing::HasSubstr("index_add_ or scatter_add_"));
  EXPECT_EQ(action_of(step_with("aten::index_add", 300, "indexFuncLargeIndex")), "");
}

// F.interpolate under deterministic algorithms: no line of the program calls index_put_. Without fills of new memory, the cause is not
// known; in another node it is another one.
TEST(CostlyOperatorTest, KnowsDeterministicInterpolations) {
  const auto action = [](const char* node, bool fills) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < 2; ++i) {
        p.begin_op("aten::empty");
        if (fills) p.begin_op("aten::fill_").kernel("fill", 2).end();
        p.end();
      }
      p.begin_op(std::string("autograd::engine::evaluate_function: ") + node).begin_op(node);
      p.begin_op("aten::index_put_").kernel("indexing_backward_kernel<float>", 300).end();
      p.end().end();
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action("UnsafeIndexBackward0", true),
              ::testing::HasSubstr("use_deterministic_algorithms"));
  EXPECT_EQ(action("UnsafeIndexBackward0", false), "");
  EXPECT_EQ(action("OtherBackward0", true), "");
}

// What comes after the sort takes all of it, or cuts it.
TEST(CostlyOperatorTest, LeavesAnOrderThatIsUsedWholeAlone) {
  const auto action = [](const char* next) {
    ProgramSketch program;
    const auto wide = inputs("[[512, 16384], []]", R"(["float", ""])", "", "");
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op("aten::sort", wide).kernel("radix_sort", 300).end();
      p.begin_op(next, wide).kernel("k", 10).end();
    });
    return action_of(program.trace());
  };
  EXPECT_EQ(action("aten::gather"), "");
  EXPECT_THAT(action("aten::slice"), ::testing::HasSubstr("topk"));
  EXPECT_THAT(action("aten::select"), ::testing::HasSubstr("topk"));
}

// The first 4,096 of 16,384 are a quarter of a row; all but the first one are not few.
TEST(CostlyOperatorTest, CountsWhatIsCutOutOfAnOrder) {
  const auto action = [](const char* from, const char* to) {
    ProgramSketch program;
    const auto wide = inputs("[[512, 16384], []]", R"(["float", ""])", "", "");
    const auto slice = inputs("[[512, 16384], [], [], [], []]",
                              R"(["float", "Scalar", "Scalar", "Scalar", "Scalar"])", "",
                              R"(["", "1", ")" + std::string(from) + R"(", ")" + to + R"(", "1"])");
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op("aten::sort", wide).kernel("radix_sort", 300).end();
      p.begin_op("aten::slice", slice).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action("0", "4096"), ::testing::HasSubstr("topk"));
  EXPECT_THAT(action("-50", "9223372036854775807"), ::testing::HasSubstr("topk"));
  EXPECT_EQ(action("0", "4097"), "");
  EXPECT_EQ(action("1", "9223372036854775807"), "");
  EXPECT_EQ(action("0", "-1"), "");
}

TEST(CostlyOperatorTest, KnowsMaxNorm) {
  EXPECT_THAT(action_of(step_with("aten::embedding_renorm_", 300)),
              ::testing::HasSubstr("max_norm"));
}

// Of 400 us of inv, 250 are the LU decomposition, which solve makes as well. The one outside of inv is no part of it.
TEST(CostlyOperatorTest, LeavesOutWhatTheOtherOperatorNeedsToo) {
  ProgramSketch program;
  program.steps(6, [](ProgramSketch& p) {
    p.begin_op("aten::linalg_inv_ex").begin_op("aten::linalg_solve_ex");
    p.op("aten::linalg_lu_factor_ex", {}, "getrf", 250)
        .op("aten::linalg_lu_solve", {}, "trsm", 150);
    p.end().end().op("aten::linalg_lu_factor_ex", {}, "getrf", 250);
  });
  const auto finding = find_by_rule(program.trace(), "costly-operator");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->action.pattern, "To multiply by the inverse use torch.linalg.solve(A, B)");
  EXPECT_EQ(finding->at_stake_ns, us(150));
}

TEST(CostlyOperatorTest, RowsAreInOrder) {
  const auto rows = rules::operator_advice();
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(),
                             [](const auto& a, const auto& b) { return a.op < b.op; }));
  for (const auto& row : rows) {
    EXPECT_TRUE(std::string(row.source).starts_with("https://")) << row.op;
    EXPECT_LE(std::string(row.action).size(), 75u) << row.op;
  }
}

// The backward part takes longer, but only the forward part is called by a line of the program. Both count.
TEST(CostlyOperatorTest, NamesTheForwardOperator) {
  const auto of = [](const char* forward) {
    ProgramSketch program;
    const auto product = inputs("[[4, 100, 64, 64], [], []]", R"(["float", "Scalar", "Scalar"])",
                                "[[409600, 1, 6400, 100], [], []]", R"(["", "2", "False"])");
    const auto gradient =
        inputs("[[4, 100, 64, 64], [4, 100, 64, 64], [], []]",
               R"(["float", "float", "Scalar", "ScalarType"])",
               "[[409600, 1, 6400, 100], [409600, 1, 6400, 100], [], []]", R"(["", "", "2", "6"])");
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op(forward, product).kernel("softmax", 100).end();
      p.begin_op("aten::_softmax_backward_data", gradient).kernel("softmax_back", 300).end();
    });
    return find_by_rule(program.trace(), "costly-operator");
  };
  const auto both = of("aten::_softmax"), one = of("aten::mm");
  ASSERT_TRUE(both);
  ASSERT_TRUE(one);
  EXPECT_EQ(both->brief.values[0].text, "aten::_softmax");
  EXPECT_EQ(both->at_stake_ns, us(400));
  EXPECT_EQ(one->brief.values[0].text, "aten::_softmax_backward_data");
}

// A cell whose next input is chosen from its result cannot take the whole sequence.
TEST(CostlyOperatorTest, IsQuietAboutCellsThatFeedThemselves) {
  const auto finding = [](const char* between) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int i = 0; i < 10; ++i)
        p.op("aten::gru_cell", {}, "cell", 30).op(between, {}, "other", 5);
    });
    return find_by_rule(program.trace(), "costly-operator");
  };
  EXPECT_TRUE(finding("aten::linear"));
  EXPECT_FALSE(finding("aten::argmax"));
}

// On the CPU: 300 of 400 us. How many blocks an operator has is a matter of GPUs.
TEST(CostlyOperatorTest, CountsTheCallsOfTheCpu) {
  const auto with = [](const char* op) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) { p.cpu_op(op, 300).cpu_op("aten::mm", 99); });
    return find_by_rule(program.trace(), "costly-operator");
  };
  const auto finding = with("aten::sort");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(300));
  EXPECT_FALSE(with("aten::kthvalue"));
}

}  // namespace
}  // namespace lanescope::explain
