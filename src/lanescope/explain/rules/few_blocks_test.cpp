#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::grid;
using ::testing::HasSubstr;
using testing::ProgramSketch;

// 33 of 132 multiprocessors: a quarter is used.
TEST(FewBlocksTest, SpeaksOfEmptyMultiprocessors) {
  const auto finding = find_in_steps("few-blocks", [](ProgramSketch& p) {
    p.op("aten::native_layer_norm", {}, "layer_norm_kernel", 100, grid(33));
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 75'000);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(3).integer, 33);
}

constexpr char kNormInputs[] = R"(["float", "ScalarList", "float", "float", "Scalar"])";

// A layer norm over [rows, 1024], in 90 blocks.
void draw_norm(ProgramSketch& p, const char* dims) {
  p.op("aten::native_layer_norm", {.input_dims = dims, .input_types = kNormInputs},
       "layer_norm_kernel", 100, grid(90));
}

// A larger batch does not change the grid that the program itself chose; ATen chooses its own.
TEST(FewBlocksTest, AdvisesALargerGridForAKernelOfTheProgram) {
  const auto own =
      find_in_steps("few-blocks", [](ProgramSketch& p) { p.kernel("sum_columns", 100, grid(33)); });
  ASSERT_TRUE(own);
  EXPECT_THAT(own->action.pattern, HasSubstr("larger grid"));
  EXPECT_EQ(own->brief.values.at(1).integer, 33);
  EXPECT_EQ(own->brief.values.at(2).integer, 132);
  const auto library = find_in_steps("few-blocks", [](ProgramSketch& p) {
    draw_norm(p, "[[2, 32, 1024], [], [1024], [1024], []]");
  });
  ASSERT_TRUE(library);
  EXPECT_THAT(library->action.pattern, HasSubstr("larger batch"));
  // A larger batch does more in the same time: nothing shortens a step by a known part.
  EXPECT_TRUE(library->gain_is_bound);
  EXPECT_FALSE(own->gain_is_bound);
}

// 64 rows of two samples; 4,096 rows; one sample, without training; with training; shapes unknown.
TEST(FewBlocksTest, AdvisesALargerBatchOnlyIfTheTraceShowsThatItCouldGrow) {
  const auto action = [](const char* dims, bool trains = false) {
    const auto finding = find_in_steps("few-blocks", [&](ProgramSketch& p) {
      draw_norm(p, dims);
      if (trains) p.op("autograd::engine::evaluate_function: MmBackward0", {}, kNvjet, 10);
    });
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action("[[2, 32, 1024], [], [1024], [1024], []]"), HasSubstr("larger batch"));
  EXPECT_THAT(action("[[2, 2048, 1024], [], [1024], [1024], []]"), HasSubstr("join several"));
  EXPECT_THAT(action("[[1, 64, 1024], [], [1024], [1024], []]"), HasSubstr("join several"));
  EXPECT_THAT(action("[[1, 64, 1024], [], [1024], [1024], []]", true), HasSubstr("larger batch"));
  EXPECT_THAT(action("[]"), HasSubstr("join several"));
  // Sizes of a damaged file, whose product is no number of 64 bits.
  EXPECT_THAT(action("[[4095, 4611686018427387904, 8], [], [8], [8], []]"),
              ::testing::Not(HasSubstr("larger batch")));
}

TEST(FewBlocksTest, KnowsThatASolverWorksRowByRow) {
  const auto action = [](const char* op) {
    const auto finding = find_in_steps(
        "few-blocks", [&](ProgramSketch& p) { p.op(op, {}, "trsm_kernel", 100, grid(2)); });
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action("aten::cholesky_solve"), HasSubstr("row by row"));
  EXPECT_THAT(action("aten::native_layer_norm"), HasSubstr("join several"));
}

TEST(FewBlocksTest, IsQuietOnNearlyFullGpusAndShortKernels) {
  EXPECT_FALSE(find_in_steps("few-blocks",
                             [](ProgramSketch& p) { p.op("aten::sum", {}, "k", 100, grid(126)); }));
  EXPECT_FALSE(find_in_steps("few-blocks", [](ProgramSketch& p) {
    for (int i = 0; i < 20; ++i) p.op("aten::sum", {}, "k", 9, grid(33));
  }));
}

// torch's own grid for this loss is one block.
TEST(FewBlocksTest, IsQuietAboutGridsThatNothingChanges) {
  EXPECT_FALSE(find_in_steps("few-blocks", [](ProgramSketch& p) {
    p.op("aten::nll_loss_forward", {}, "nll_loss_forward_reduce_cuda_kernel_2d<float>", 100,
         grid(1));
  }));
  // The gradients of a norm's weights: a block for 32 features.
  EXPECT_FALSE(find_in_steps("few-blocks", [](ProgramSketch& p) {
    p.op("aten::native_layer_norm_backward", {},
         "void at::native::GammaBetaBackwardCUDAKernelTemplate<float, float, 32u>", 100, grid(16));
  }));
}

TEST(FewBlocksTest, AsksForGrids) {
  const Fields rocm{.grid = "[33, 1, 1]", .block = "[256, 1, 1]"};
  EXPECT_EQ(state_in_steps("few-blocks",
                           [&](ProgramSketch& p) { p.op("aten::sum", {}, "k", 100, rocm); }),
            RuleRun::State::kNotChecked);
  EXPECT_EQ(state_in_steps("wave-tail",
                           [&](ProgramSketch& p) { p.op("aten::mm", {}, kAmpereGemm, 100, rocm); }),
            RuleRun::State::kNotChecked);
  EXPECT_EQ(state_in_steps("low-occupancy",
                           [&](ProgramSketch& p) {
                             p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 200, rocm);
                           }),
            RuleRun::State::kNotChecked);
}

// Another stream uses the rest of the GPU meanwhile.
TEST(FewBlocksTest, IsQuietWhenOtherWorkRunsBeside) {
  EXPECT_FALSE(find_in_steps("few-blocks", [](ProgramSketch& p) {
    Fields other = grid(1320);
    other.stream = 9;
    p.op("aten::mm", {}, kNvjet, 100, other);
    p.op("aten::sum", {}, "k", 100, grid(33));
  }));
}

// In a host-bound step it is reported, but not as a cost.
TEST(FewBlocksTest, CostsNothingWhereTheGpuWaits) {
  const auto finding = find_in_steps(
      "few-blocks", [](ProgramSketch& p) { p.op("aten::sum", {}, "k", 100, grid(33)).pass(200); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_THAT(finding->arithmetic.back().pattern, HasSubstr("waits for the CPU"));
}

// Layers of a model that makes one word at a time: attention with 20 blocks, and products with its weights.
TEST(FewBlocksTest, SaysThatProductsOfFewRowsReadAllWeights) {
  const auto action = [](std::string_view gemm, std::string_view dims, bool trains = false,
                         std::string_view op = "aten::linear") {
    const auto finding = find_in_steps("few-blocks", [&](ProgramSketch& p) {
      p.op("aten::scaled_dot_product_attention", {}, "fmha_cutlassF_bf16_aligned_64x64_rf_sm80", 50,
           grid(20));
      p.op(std::string(op), dims.empty() ? Fields{} : shapes(dims, kBf16), gemm, 100, grid(1320));
      if (trains) p.op("autograd::engine::evaluate_function: MmBackward0", {}, kNvjet, 10);
    });
    return finding ? finding->action.pattern : std::string();
  };
  constexpr std::string_view kTileOf8 = "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT";
  EXPECT_THAT(action(kTileOf8, {}), HasSubstr("read all weights"));
  EXPECT_THAT(action(kNvjet, {}), HasSubstr("join several"));
  EXPECT_THAT(action(kNvjet, "[[1, 1, 4096], [4096, 4096]]"), HasSubstr("read all weights"));
  // Shapes say more than the name: the rows of LoRA's small side are many.
  EXPECT_THAT(action(kTileOf8, "[[4096, 4096], [8, 4096]]"), HasSubstr("join several"));
  EXPECT_THAT(action(kTileOf8, {}, true), HasSubstr("join several"));
  // Products with matrices of each sample.
  EXPECT_THAT(action(kTileOf8, {}, false, "aten::bmm"), HasSubstr("join several"));
}

// A scan over the rows of [8192, 32] has 32 threads, however many rows there are. A scan along the last dimension has more
// threads with more rows.
TEST(FewBlocksTest, TransposesAScanOfFewColumns) {
  const auto action = [](const char* kernel) {
    const auto finding = find_in_steps(
        "few-blocks", [&](ProgramSketch& p) { p.op("aten::cumsum", {}, kernel, 100, grid(1)); });
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action("void at::native::tensor_kernel_scan_outer_dim<float, unsigned int, "
                     "std::plus<float> >(float*, float const*)"),
              HasSubstr("x.t().contiguous().cumsum(1)"));
  EXPECT_THAT(action("void at::native::tensor_kernel_scan_innermost_dim<float, std::plus<float> "
                     ">(float*, float const*)"),
              HasSubstr("join several"));
}

// One block for 64 x 65,536 elements; or for 2 x 128.
TEST(FewBlocksTest, AdvisesNoLargerBatchWhereBlocksAreFull) {
  const auto action = [](const char* dims) {
    const auto finding = find_in_steps("few-blocks", [&](ProgramSketch& p) {
      p.op("aten::sum", {.input_dims = dims, .input_types = R"(["float", "ScalarList"])"},
           "reduce_kernel", 100, grid(1));
    });
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action("[[64, 65536], []]"), HasSubstr("more rows make no more"));
  EXPECT_THAT(action("[[2, 128], []]"), HasSubstr("join several"));
}

}  // namespace
}  // namespace lanescope::explain
