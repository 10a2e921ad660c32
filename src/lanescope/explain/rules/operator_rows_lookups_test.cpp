// Rows for lookups, sorts and counts, each with a call that is no fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "lanescope/explain/rules/drawn_operators_test.h"

namespace lanescope::explain {
namespace {

// By a tensor of counts nothing can be expanded; by a number it can.
TEST(LookupRowsTest, TellsRepeatsByCountsFromRepeatsByANumber) {
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
TEST(LookupRowsTest, KnowsWhatIsCoalesced) {
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

// In the backward part of a product the transposed matrix is sorted, also if the program sorted its own.
TEST(LookupRowsTest, KnowsThatTheBackwardPartTransposes) {
  const auto action = [](const char* around) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op(around).begin_op("aten::coalesce").kernel("radix_sort", 300).end().end();
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action("SparseAddmmBackward0"), ::testing::HasSubstr("autograd.Function"));
  EXPECT_THAT(action("aten::_sparse_mm"), ::testing::HasSubstr("before the loop"));
}

// 65,536 lookups meet every row of a small table; 512 meet a part of a large one.
TEST(LookupRowsTest, LeavesTheGradientOfASmallTableDense) {
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

// 32 lookups of a row each in a step make 32 gradients of the table.
TEST(LookupRowsTest, AdvisesOneLookupWhereThereAreMany) {
  const auto action = [](const char* op, int calls) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < calls; ++i) p.begin_op(op).kernel("fill", 3200 / calls).end();
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action("aten::embedding_dense_backward", 32), ::testing::HasSubstr("one call"));
  EXPECT_THAT(action("aten::_embedding_bag_dense_backward", 32), ::testing::HasSubstr("one call"));
  EXPECT_THAT(action("aten::embedding_dense_backward", 2),
              ::testing::StartsWith("Use nn.Embedding(sparse=True)"));
  EXPECT_EQ(action("aten::_embedding_bag_dense_backward", 2), "");
}

// Each of 8 or 7 gradients launches ten kernels of 2 us, which the GPU waits for; or 400 us long ones, which keep it busy.
TEST(LookupRowsTest, AdvisesToJoinTablesWhereTheirLaunchesAreTheLimit) {
  const auto action = [](int tables, std::int64_t kernel_us) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < tables; ++i) {
        p.begin_op("aten::embedding_dense_backward");
        for (int k = 0; k < 10; ++k) p.pass(8).kernel("radix_sort", kernel_us);
        p.end();
      }
      p.begin_op("aten::mm").kernel("gemm", 20).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action(8, 2), ::testing::HasSubstr("add offsets to the indices"));
  EXPECT_EQ(action(7, 2), "");  // too few, and a sparse gradient would only add launches
  EXPECT_THAT(action(8, 400), ::testing::StartsWith("Use nn.Embedding(sparse=True)"));
}

// Nine lookups with a gradient each, and long kernels, so that the GPU is the limit. Each lookup has a table of its own, or all have one,
// whose gradients are added up first; or the tables have fewer rows than are looked up.
TEST(LookupRowsTest, AdvisesOneSparseTableForManyLargeTables) {
  const auto action = [](bool own, int lookups, const char* rows) {
    constexpr char kNode[] = "autograd::engine::evaluate_function: ";
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      const auto accumulate = [&] {
        p.begin_op(std::string(kNode) + "torch::autograd::AccumulateGrad").pass(1).end();
      };
      for (int i = 0; i < lookups; ++i) {
        p.begin_op(std::string(kNode) + "EmbeddingBackward0");
        p.op("aten::embedding_dense_backward",
             inputs("[[512, 64], [512], [], [], []]",
                    R"(["float", "long int", "Scalar", "Scalar", "Scalar"])", "",
                    std::string(R"(["", "", ")") + rows + R"(", "-1", "False"])"),
             "fill", 400);
        p.end();
        if (own) accumulate();
      }
      if (!own) accumulate();
      p.begin_op("aten::mm").kernel("gemm", 20).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action(true, 9, "100000"), ::testing::StartsWith("One table of all"));
  EXPECT_THAT(action(false, 9, "100000"), ::testing::StartsWith("Use nn.Embedding(sparse=True)"));
  EXPECT_THAT(action(true, 7, "100000"), ::testing::StartsWith("Use nn.Embedding(sparse=True)"));
  EXPECT_EQ(action(true, 9, "256"), "");
}

// Histories of 64 words, as rows of 128: [2048, 64, 128].
TEST(LookupRowsTest, SeesRowsThatAreOnlyAddedUp) {
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

TEST(LookupRowsTest, SeesASortInTheBackwardPartOfAnIndex) {
  const auto action = [](const char* node, bool has_mask = false) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op(node).begin_op("aten::_index_put_impl_");
      if (has_mask) p.op("aten::nonzero", {}, "select", 2);
      p.kernel("indexing_backward_kernel<float>", 300).end().end();
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action("IndexBackward0"),
              ::testing::HasSubstr("For rows of up to 16 numbers: x.index_select(0, index)"));
  EXPECT_EQ(action("aten::index_copy_"), "");
  EXPECT_EQ(action("IndexBackward0", true), "");  // x[mask]: index_select() takes no mask
}

// A sort costs as much for wide rows as for narrow ones, atomic additions do not: 1.5 million rows of 128 numbers stay as they are.
TEST(LookupRowsTest, AdvisesIndexSelectOnlyForFewNumbers) {
  const auto action = [](const char* dims) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op("IndexBackward0")
          .begin_op(
              "aten::_index_put_impl_",
              inputs(dims, R"(["float", "TensorList", "float", "Scalar", "Scalar"])", "", ""));
      p.kernel("indexing_backward_kernel<float>", 300).end().end();
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action("[[100000, 16], [], [1500000, 16], [], []]"),
              ::testing::HasSubstr("index_select"));
  EXPECT_EQ(action("[[100000, 128], [], [1500000, 128], [], []]"), "");
  EXPECT_THAT(action("[[100000, 128], [], [100000, 128], [], []]"),
              ::testing::HasSubstr("index_select"));
  EXPECT_EQ(action("[[100000, 256], [], [100000, 256], [], []]"), "");
  // Wide rows, but few: no word of rows of 16 numbers, which these are not.
  EXPECT_EQ(action("[[2048, 512], [], [351, 512], [], []]"),
            "Use x.index_select(0, index): its backward part needs no sort");
  // x[i, j] takes single numbers of rows, which index_select() cannot.
  EXPECT_EQ(action("[[2048, 8], [], [351], [], []]"), "");
}

TEST(LookupRowsTest, SeesCountsByOneHotTensors) {
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

// The grid of grid_sample counts, and grid_sample with it if the grid is affine_grid's.
TEST(LookupRowsTest, SeesPicturesThatAreMovedByAGrid) {
  const auto action = [](const char* first, const char* size) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op(first, inputs("[[8, 2, 3], [], []]", R"(["float", "ScalarList", "Scalar"])", "",
                               std::string(R"(["", ")") + size + R"(", "False"])"));
      p.kernel("bmm", 10).end();
      p.begin_op("aten::grid_sampler",
                 inputs("[[8, 3, 64, 32], [8, 64, 32, 2], [], [], []]",
                        R"(["float", "float", "Scalar", "Scalar", "Scalar"])", "", ""));
      p.kernel("grid_sampler_2d", 100).end();
      p.begin_op("aten::mm").kernel("gemm", 200).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action("aten::affine_grid_generator", "[8, 3, 64, 32]"),
              ::testing::HasSubstr("flip"));
  EXPECT_EQ(action("aten::affine_grid_generator", "[8, 3, 16, 16]"), "");  // 10 of 310 us
  EXPECT_EQ(action("aten::mul", "[8, 3, 64, 32]"), "");  // the places are the program's own
}

TEST(LookupRowsTest, KnowsWritesIntoPartsOfATensor) {
  const auto with = [](int writes) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < writes; ++k)
        program.begin_op("torch::autograd::CopySlices").cpu_op("aten::copy_", 100).end();
      program.end();
    }
    return action_of(program.trace());
  };
  EXPECT_THAT(with(4), ::testing::HasSubstr("masked_fill"));
  EXPECT_EQ(with(3), "");
}

// The conversion is named with how often it runs, and whether it may be the same matrix.
TEST(LookupRowsTest, SeesConversionsOfSparseMatrices) {
  const auto brief = [](bool of_one_size, const char* op) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (const char* dims :
           {"[[500, 500], []]", of_one_size ? "[[500, 500], []]" : "[[9, 9], []]"})
        p.begin_op(op, inputs(dims, R"(["float", ""])", "[[], []]", R"(["", ""])"))
            .kernel("radix_sort", 150)
            .end();
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    const auto finding = find_by_rule(program.trace(), "costly-operator");
    if (!finding) return std::string();
    EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("once, before the loop"));
    return finding->brief.pattern;
  };
  EXPECT_THAT(brief(true, "aten::to_sparse_csr"), ::testing::HasSubstr("of one size"));
  EXPECT_THAT(brief(false, "aten::to_sparse_csr"), ::testing::Not(::testing::HasSubstr("size")));
  EXPECT_EQ(brief(true, "aten::to_mkldnn"), "");
}

// 32 pictures one by one, or a batch of them; angles make matrices that turn them.
TEST(LookupRowsTest, OneGridForAllPicturesOfABatch) {
  const auto action = [](int calls, const char* matrices, bool with_angles = false) {
    const auto call =
        inputs(std::string("[") + matrices + ", [], []]", R"(["float", "ScalarList", "Scalar"])",
               "", R"(["", "[1, 3, 64, 64]", "False"])");
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < calls; ++i) {
        if (with_angles)
          for (const char* op : {"aten::cos", "aten::sin"}) p.begin_op(op).kernel(op, 1).end();
        p.begin_op("aten::affine_grid_generator", call).kernel("k", 640 / calls).end();
      }
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action(32, "[1, 2, 3]"), ::testing::StartsWith("For a batch"));
  EXPECT_THAT(action(4, "[1, 2, 3]"), ::testing::HasSubstr("flip"));
  EXPECT_THAT(action(1, "[32, 2, 3]"), ::testing::HasSubstr("flip"));
  EXPECT_EQ(action(1, "[32, 2, 3]", true), "");  // no flip is as good
  EXPECT_THAT(action(32, "[1, 2, 3]", true), ::testing::StartsWith("For a batch"));
}

// Messages along 100,000 edges: rows of nodes, looked up and added up. Or of a product of them, or of few edges.
TEST(LookupRowsTest, SeesRowsThatAreLookedUpToBeAddedUp) {
  const auto action = [](const char* before, const char* edges) {
    const std::string count(edges);
    const auto lookup = inputs("[[5000, 64], [], [" + count + "]]",
                               R"(["float", "Scalar", "long int"])", "", R"(["", "0", ""])");
    const auto sum = inputs("[[5000, 64], [], [" + count + "], [" + count + ", 64], []]",
                            R"(["float", "Scalar", "long int", "float", "Scalar"])", "",
                            R"(["", "0", "", "", "1"])");
    return after(before, lookup, "aten::index_add_", sum);
  };
  EXPECT_THAT(action("aten::index_select", "100000"), ::testing::HasSubstr("sparse matrix"));
  EXPECT_EQ(action("aten::relu", "100000"), "");
  EXPECT_EQ(action("aten::index_select", "1000"), "");
}

// Rows of 4 and of 64 floats, by the kernel for whole rows and by another one.
TEST(LookupRowsTest, KnowsThatNarrowRowsTakeAsLongAsWideOnes) {
  const auto action = [](const char* op, const char* dims, const char* kernel) {
    const auto call = inputs(dims, R"(["float", ""])", "", R"(["", ""])");
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op(op, call).kernel(kernel, 200).end();
      p.begin_op("aten::mm").kernel("gemm", 100).end();
    });
    return action_of(program.trace());
  };
  constexpr char kRows[] =
      "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long)";
  for (const char* op : {"aten::index", "aten::index_select", "aten::embedding"})
    EXPECT_THAT(action(op, "[[169343, 4], []]", kRows), ::testing::HasSubstr("take_along_dim"));
  EXPECT_EQ(action("aten::index", "[[169343, 4, 64], []]", kRows), "");
  EXPECT_EQ(action("aten::index", "[[169343, 2], []]", kRows), "");
  EXPECT_EQ(action("aten::index", "[[169343, 4], []]", "index_elementwise_kernel"), "");
}

}  // namespace
}  // namespace lanescope::explain
