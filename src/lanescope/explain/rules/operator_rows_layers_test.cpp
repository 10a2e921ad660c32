// Rows for layers, losses and optimizers, each with a call that is no fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/rules/drawn_operators_test.h"

namespace lanescope::explain {
namespace {

// The first step makes the state. A new optimizer makes it in each.
TEST(LayerRowsTest, SeesAnOptimizerThatIsMadeAgain) {
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

// Scores of 32,000 words at 512 positions, 300 us, cast and normalized in 100 us each. What takes them then decides.
struct Reader {
  const char* op;
  std::string concrete, dims = "[[4, 512, 32000], [], []]";
  const char* types = R"(["float", "Scalar", "Scalar"])";
};

std::string positions_action(const std::vector<Reader>& readers) {
  ProgramSketch program;
  const char* scores = "[[4, 512, 32000], [], []]";
  const char* types = R"(["float", "Scalar", "Scalar"])";
  program.steps(6, [&](ProgramSketch& p) {
    p.begin_op("aten::linear",
               inputs("[[4, 512, 64], [32000, 64]]", R"(["float", "float"])", "", R"(["", ""])"));
    p.kernel("gemm", 300).end();
    p.begin_op("aten::to", inputs(scores, types, "", R"(["", "6", "False"])"));
    p.kernel("copy", 100).end();
    p.begin_op("aten::log_softmax", inputs(scores, types, "", R"(["", "-1", ""])"));
    p.kernel("softmax", 100).end();
    for (const Reader& reader : readers) {
      p.begin_op(reader.op, inputs(reader.dims, reader.types, "", reader.concrete));
      p.kernel("k", 20).end();
    }
    p.begin_op("aten::add").kernel("add", 300).end();
  });
  return action_of(program.trace());
}

TEST(LayerRowsTest, TakesPositionsBeforeTheLastLayer) {
  const std::string advice = "positions first";
  const Reader last{"aten::select", R"(["", "1", "-1"])"};
  EXPECT_THAT(positions_action({last}), ::testing::HasSubstr(advice));
  EXPECT_THAT(positions_action({{"aten::slice", R"(["", "1", "504", "512", "1"])",
                                 "[[4, 512, 32000], [], [], [], []]"}}),
              ::testing::HasSubstr(advice));
  // The last of each text, by two lists; eight of them by their numbers, or by their first and count.
  const Reader listed{"aten::index", R"(["", ""])", "[[4, 512, 32000], [[4], [4]]]",
                      R"(["float", "TensorList"])"};
  EXPECT_THAT(positions_action({listed}), ::testing::HasSubstr(advice));
  EXPECT_THAT(positions_action(
                  {{"aten::narrow", R"(["", "1", "504", "8"])", "[[4, 512, 32000], [], [], []]"}}),
              ::testing::HasSubstr(advice));
  EXPECT_THAT(positions_action(
                  {{"aten::narrow", R"(["", "1", "4", "500"])", "[[4, 512, 32000], [], [], []]"}}),
              ::testing::Not(::testing::HasSubstr(advice)));
  // By a mask, which does not show how many.
  EXPECT_THAT(positions_action({{"aten::index", R"(["", ""])", "[[4, 512, 32000], [[4, 512]]]",
                                 R"(["float", "TensorList"])"}}),
              ::testing::Not(::testing::HasSubstr(advice)));
  // All positions but the last, as for a loss; one class of each; the rows of a batch in a loop; all of it again.
  EXPECT_THAT(positions_action({{"aten::slice", R"(["", "1", "0", "-1", "1"])",
                                 "[[4, 512, 32000], [], [], [], []]"}}),
              ::testing::Not(::testing::HasSubstr(advice)));
  EXPECT_THAT(positions_action({{"aten::select", R"(["", "2", "7"])"}}),
              ::testing::Not(::testing::HasSubstr(advice)));
  EXPECT_THAT(positions_action(
                  {{"aten::select", R"(["", "0", "0"])"}, {"aten::select", R"(["", "0", "1"])"}}),
              ::testing::Not(::testing::HasSubstr(advice)));
  EXPECT_THAT(positions_action({last, {"aten::sum", R"(["", "", ""])"}}),
              ::testing::Not(::testing::HasSubstr(advice)));
  EXPECT_THAT(positions_action({{"aten::sum", R"(["", "", ""])"}}),
              ::testing::Not(::testing::HasSubstr(advice)));
}

// Six norms of which each copies its input in 60 us. The input is a sum, that of a scale and a shift as well; or the norm comes right
// after a view that each layer makes.
TEST(LayerRowsTest, SeesAStateThatStaysTransposed) {
  const auto action = [](std::vector<std::string> before, bool copies) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < 6; ++i) {
        for (const std::string& op : before) p.begin_op(op).kernel("k", 10).end();
        p.begin_op("aten::layer_norm").begin_op("aten::contiguous");
        if (copies) p.begin_op("aten::copy_").kernel("direct_copy_kernel_cuda", 60).end();
        p.end().kernel("norm", 30).end();
      }
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action({"aten::add"}, true), ::testing::HasSubstr(".contiguous() once"));
  EXPECT_THAT(action({"aten::add", "aten::silu", "aten::linear", "aten::chunk"}, true),
              ::testing::HasSubstr(".contiguous() once"));
  EXPECT_EQ(action({"aten::add"}, false), "");
  EXPECT_EQ(action({"aten::add", "aten::permute"}, true), "");
  EXPECT_EQ(action({"aten::add", "aten::linear", "aten::chunk"}, true), "");
}

// Each of six norms copies 60 us in the forward and 50 us in the backward pass; of the other 40 us of a node nothing goes.
TEST(LayerRowsTest, CountsTheCopiesOfTheBackwardPassOfANorm) {
  const auto at_stake = [](const char* kernel) {
    ProgramSketch program;
    std::int64_t number = 0;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < 6; ++i, ++number) {
        p.begin_op("aten::add").kernel("k", 10).end();
        p.begin_op("aten::layer_norm");
        p.begin_op("aten::native_layer_norm", {.sequence = number});
        p.begin_op("aten::copy_").kernel("direct_copy_kernel_cuda", 60).end();
        p.kernel("norm", 30).end().end();
      }
      for (int i = 1; i <= 6; ++i) {
        p.begin_op("autograd::engine::evaluate_function: NativeLayerNormBackward0",
                   {.sequence = number - i, .fwd_thread = 1});
        p.begin_op("NativeLayerNormBackward0", {.sequence = number - i, .fwd_thread = 1});
        p.kernel(kernel, 50).kernel("norm_backward", 40).end().end();
      }
    });
    return find_by_rule(program.trace(), "costly-operator").value_or(Finding()).at_stake_ns;
  };
  EXPECT_EQ(at_stake("direct_copy_kernel_cuda"), 6 * 110'000);
  EXPECT_EQ(at_stake("other"), 6 * 60'000);
}

// Four norms of 60 us after a layer, which may add a bias. Near misses: statistics of the batch, no layer before, nothing that the norm
// could join, a trace that trains.
TEST(LayerRowsTest, JoinsNormsOfFixedStatistics) {
  struct Norm {
    const char* before = "aten::conv2d";
    bool has_bias = false;
    const char* kernel = "batch_norm_calc_invstd";
    const char* after = "aten::relu_";
    const char* last = "aten::mm";
  };
  const auto action = [](const Norm& norm) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < 4; ++i) {
        p.begin_op(norm.before).kernel("gemm", 100);
        if (norm.has_bias) p.begin_op("aten::add_").kernel("add", 20).end();
        p.end().begin_op("aten::batch_norm").begin_op("aten::native_batch_norm");
        p.kernel(norm.kernel, 2).kernel("batch_norm_transform_input_kernel", 58).end().end();
        p.begin_op(norm.after).kernel("k", 20).end();
      }
      p.begin_op(norm.last).kernel("k", 10).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action({}), ::testing::HasSubstr("torch.compile"));
  EXPECT_THAT(action({.has_bias = true}), ::testing::HasSubstr("fuse_conv_bn_eval"));
  EXPECT_THAT(action({.before = "aten::linear", .kernel = "bn_fw_inf_1C11_kernel"}),
              ::testing::HasSubstr("fuse_conv_bn_eval"));
  EXPECT_EQ(action({.kernel = "batch_norm_collect_statistics_kernel"}), "");
  EXPECT_EQ(action({.before = "aten::relu"}), "");
  EXPECT_EQ(action({.after = "aten::max_pool2d"}), "");
  EXPECT_EQ(action({.last = "autograd::engine::evaluate_function: ReluBackward0"}), "");
}

// In double precision oneDNN has no convolution to switch to.
TEST(LayerRowsTest, SeesConvolutionsWithoutALibrary) {
  const auto with = [](const char* type) {
    return action_of(
        step_with_inputs("aten::_slow_conv2d_forward",
                         inputs("[[8, 4, 8, 8]]", std::string("[\"") + type + "\"]", "", "")));
  };
  EXPECT_THAT(with("float"), ::testing::HasSubstr("cudnn.enabled"));
  EXPECT_EQ(with("double"), "");
}

// On a CPU, next to a convolution that oneDNN takes: oneDNN is on, but this call is too small for it.
TEST(LayerRowsTest, KnowsThatOneDnnTakesLargerConvolutions) {
  const auto with = [](const char* other) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i)
      program.step()
          .cpu_op("aten::_slow_conv2d_forward", 900)
          .cpu_op(other, 300)
          .cpu_op("aten::add", 300)
          .end();
    return action_of(program.trace());
  };
  EXPECT_THAT(with("aten::mkldnn_convolution"), ::testing::HasSubstr("more images"));
  EXPECT_THAT(with("aten::mm"), ::testing::HasSubstr("mkldnn.enabled"));
}

TEST(LayerRowsTest, KnowsColumnsOfWindows) {
  EXPECT_THAT(action_of(step_with("aten::im2col", 300)), ::testing::HasSubstr("F.conv2d"));
  EXPECT_EQ(action_of(step_with("aten::unfold", 300)), "");  // a view
}

// cuDNN copies scattered weights first. Only these copies are the cost, not the cells: 60 of 360 us.
TEST(LayerRowsTest, CountsOnlyTheCopiesOfScatteredWeights) {
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
TEST(LayerRowsTest, SeesLargeFiltersOfOneChannel) {
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

// Taps of a filter, and a stride: a patch embedding takes long steps.
TEST(LayerRowsTest, SeesLongFilters) {
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

TEST(LayerRowsTest, SeesSmoothedLabelsThatAreFilledIn) {
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
TEST(LayerRowsTest, AddsABackwardPartThatGoesAcrossRowsToo) {
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
TEST(LayerRowsTest, KnowsTheSoftmaxOfAnInnerDimension) {
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

TEST(LayerRowsTest, SeesASoftmaxThatOnlyArgmaxReads) {
  const auto scores =
      inputs("[[64, 1000], [], []]", R"(["float", "Scalar", ""])", "", R"(["", "1", ""])");
  EXPECT_THAT(action_before("aten::softmax", scores, "aten::argmax", scores),
              ::testing::HasSubstr("argmax of the scores"));
  EXPECT_EQ(action_before("aten::softmax", scores, "aten::max", scores), "");
  // The probabilities are read as well.
  EXPECT_EQ(action_before("aten::softmax", scores, "aten::argmax", scores, "aten::log", scores),
            "");
}

TEST(LayerRowsTest, SeesTheGradientOfImages) {
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
TEST(LayerRowsTest, SeesAttentionInFloat32) {
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

// 4,096 rows of 1,000 classes, of which one a row is kept.
TEST(LayerRowsTest, SeesALogSoftmaxThatIsOnlyGathered) {
  const auto with = [](const char* index, const char* later) {
    const auto scores =
        inputs("[[4096, 1000], [], []]", R"(["float", "Scalar", ""])", "", R"(["", "1", ""])");
    const auto taken =
        inputs(std::string("[[4096, 1000], [], ") + index + ", []]",
               R"(["float", "Scalar", "long int", "Scalar"])", "", R"(["", "-1", "", "False"])");
    return action_before("aten::log_softmax", scores, "aten::gather", taken, "aten::exp",
                         inputs(later, R"(["float"])", "", ""));
  };
  EXPECT_THAT(with("[4096, 1]", "[[64, 64]]"), ::testing::HasSubstr("logsumexp"));
  EXPECT_EQ(with("[4096, 500]", "[[64, 64]]"), "");
  EXPECT_EQ(with("[4096, 1]", "[[4096, 1000]]"), "");  // an entropy needs them all
}

// The second loss of pictures and texts takes logits.T, which torch copies before it goes along rows.
TEST(LayerRowsTest, LeavesTransposedMatricesAlone) {
  const auto with = [](const char* dims, const char* strides) {
    return action_of(step_with_inputs(
        "aten::_log_softmax",
        inputs(std::string("[") + dims + ", [], []]", R"(["float", "Scalar", "Scalar"])",
               std::string("[") + strides + ", [], []]", R"(["", "1", "False"])")));
  };
  EXPECT_EQ(with("[2048, 2048]", "[1, 2048]"), "");
  EXPECT_THAT(with("[8, 1000, 512]", "[512000, 512, 1]"), ::testing::HasSubstr("classes last"));
}

// A convolution, ReLU, and slices of its result with these steps; what follows may need all of the result, too.
std::string action_of_sliced(const char* step, const char* between = "aten::relu",
                             const char* later = "[[8, 32, 56, 56], []]") {
  const auto taken = [](const char* dims) {
    return inputs(dims, R"(["float", ""])", "", R"(["", ""])");
  };
  const auto sliced = [&](const char* dims, const char* dim) {
    return inputs(
        dims, R"(["float", "Scalar", "Scalar", "Scalar", "Scalar"])", "",
        std::string(R"(["", ")") + dim + R"(", "0", "9223372036854775807", ")" + step + R"("])");
  };
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    p.begin_op("aten::conv2d", inputs("[[8, 3, 112, 112], [32, 3, 3, 3]]", R"(["float", "float"])",
                                      "", R"(["", ""])"));
    p.kernel("conv", 300).end();
    p.begin_op(between, taken("[[8, 32, 112, 112], []]")).kernel("k", 10).end();
    p.begin_op("aten::slice", sliced("[[8, 32, 112, 112], [], [], [], []]", "2")).pass(1).end();
    p.begin_op("aten::slice", sliced("[[8, 32, 56, 112], [], [], [], []]", "3")).pass(1).end();
    p.begin_op("aten::mean", taken(later)).kernel("mean", 100).end();
  });
  return action_of(program.trace());
}

TEST(LayerRowsTest, SeesConvolutionsOfWhichSlicesKeepFewPlaces) {
  EXPECT_THAT(action_of_sliced("2"), ::testing::HasSubstr("stride=2"));
  EXPECT_EQ(action_of_sliced("1"), "");
  EXPECT_EQ(action_of_sliced("2", "aten::softmax"), "");
  EXPECT_EQ(action_of_sliced("2", "aten::relu", "[[8, 32, 112, 112], []]"), "");
}

// The gradient of the slice, or one that other work has added to.
TEST(LayerRowsTest, SeesBackwardPartsOfConvolutionsOfWhichSlicesKeepFewPlaces) {
  const auto action = [](const char* step, const char* later) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op(
          "aten::slice_backward",
          inputs("[[8, 32, 56, 112], [], [], [], [], []]",
                 R"(["float", "ScalarList", "Scalar", "Scalar", "Scalar", "Scalar"])", "",
                 std::string(R"(["", "[8, 32, 112, 112]", "2", "0", "9223372036854775807", ")") +
                     step + R"("])"));
      p.kernel("fill", 10).end();
      p.begin_op(later, inputs("[[8, 32, 112, 112], []]", R"(["float", ""])", "", R"(["", ""])"));
      p.kernel("k", 10).end();
      p.begin_op("aten::convolution_backward",
                 inputs("[[8, 32, 112, 112], [8, 16, 112, 112], [32, 16, 3, 3]]",
                        R"(["float", "float", "float"])", "", R"(["", "", ""])"));
      p.kernel("conv", 300).end();
    });
    return action_of(program.trace());
  };
  EXPECT_THAT(action("2", "aten::threshold_backward"), ::testing::HasSubstr("stride=2"));
  EXPECT_EQ(action("1", "aten::threshold_backward"), "");
  EXPECT_EQ(action("2", "aten::add"), "");
}

// Four steps of an instance norm of 100 us with a backward part of 150 us, and a product of 100 us. `inside`: what it calls, too.
std::optional<Finding> find_instance_norm(std::string_view kernel,
                                          const std::vector<std::string_view>& inside) {
  ProgramSketch program;
  int number = 0;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin_op("aten::instance_norm");
    for (const std::string_view op : inside) p.cpu_op(op, 2);
    p.begin_op("aten::cudnn_batch_norm", {.sequence = number}).kernel(kernel, 100).end().end();
    p.begin_op("aten::mm").kernel("gemm", 100).end();
    p.begin_op("autograd::engine::evaluate_function: CudnnBatchNormBackward0",
               {.sequence = number++, .fwd_thread = 1});
    p.kernel("bn_bw_1C11_kernel_new", 150).end();
  });
  return find_by_rule(program.trace(), "costly-operator");
}

// With its backward part; GroupNorm takes some of that time itself, so it is an upper limit.
TEST(LayerRowsTest, AdvisesGroupNormForInstanceNormInTraining) {
  const auto finding =
      find_instance_norm("void cudnn::bn_fw_tr_1C11_singleread<float, 512>", {"aten::repeat"});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(250));
  EXPECT_TRUE(finding->gain_is_bound);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("GroupNorm(C, C)"));
}

// Fixed or running statistics, no weight, another type, a cast of its input.
TEST(LayerRowsTest, LeavesInstanceNormThatGroupNormIsNoFasterThan) {
  constexpr std::string_view kTrained = "void cudnn::bn_fw_tr_1C11_singleread<float, 512>";
  EXPECT_FALSE(find_instance_norm("bn_fw_inf_1C11<float>", {"aten::repeat"}));
  EXPECT_FALSE(find_instance_norm(kTrained, {"aten::repeat", "aten::mean"}));
  EXPECT_FALSE(find_instance_norm(kTrained, {}));
  EXPECT_FALSE(
      find_instance_norm("void cudnn::bn_fw_tr_1C11_singleread<__half, 512>", {"aten::repeat"}));
  EXPECT_FALSE(find_instance_norm(kTrained, {"aten::repeat", "aten::_to_copy"}));
}

}  // namespace
}  // namespace lanescope::explain
