#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_elementwise_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;
using Work = ProgramSketch::Work;

// 30 + 30 + 20 us, of which the shortest stays.
TEST(UnfusedChainTest, SavesAtMostAllButTheShortestKernel) {
  const auto finding =
      find_by_rule(after_matmul({elementwise("aten::mul", 30), elementwise("aten::add", 30),
                                 elementwise("aten::relu", 20)})
                       .trace(),
                   "unfused-chain");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 60'000);
  EXPECT_EQ(finding->verdict.values[0].integer, 1);  // one chain a step
  EXPECT_EQ(finding->verdict.values[2].integer, 80'000);
}

// The launches take 26 us: of the first kernel's 10 us end the GPU waits 18 us for the second.
// 10 + 20 us of kernels and what the GPU waited inside, without the 10 us that stay, are the
// promise.
TEST(UnfusedChainTest, NamesTheWaitsItCountsAndTheSumIsWhatItPromises) {
  Work slow = elementwise("aten::add", 20);
  slow.call_us = 20;
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step().wait().launch(elementwise("aten::mul", 10)).launch(slow).end();
  const auto finding = find_by_rule(program.trace(), "unfused-chain");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, ::testing::HasSubstr("waits {} between"));
  const auto& sum = finding->arithmetic.at(0).values;
  ASSERT_EQ(sum.size(), 4u);
  EXPECT_EQ(sum[0].integer, 30'000);
  EXPECT_GT(sum[1].integer, 0);
  EXPECT_EQ(sum[0].integer + sum[1].integer - sum[2].integer, sum[3].integer);
  EXPECT_EQ(sum[3].integer, finding->at_stake_ns);
  EXPECT_EQ(finding->verdict.values.back().integer, finding->at_stake_ns);
}

// The shapes of aten::cat are a list of shapes: it ends a chain, and does not hide the others.
TEST(UnfusedChainTest, KnowsThatListsOfShapesAreShapes) {
  const auto after_copies = [](std::string_view dims_of_cat) {
    std::vector<Work> works(5, elementwise("aten::cat", 5, dims_of_cat));
    works.push_back(elementwise("aten::add", 30));
    works.push_back(elementwise("aten::relu", 30));
    return after_matmul(works).trace();
  };
  const auto finding =
      find_by_rule(after_copies("[[[1000, 500], [1000, 500]], []]"), "unfused-chain");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 30'000);
  EXPECT_EQ(state_of_rule(after_copies(""), "unfused-chain"), RuleRun::State::kNotChecked);
}

// The product of a column and a row for each of 64 rows is 256 times as large as either: it reads what no kernel before it wrote.
TEST(UnfusedChainTest, CountsTheElementsOfTheResult) {
  const auto with = [](const char* dims) {
    return find_by_rule(after_matmul({elementwise("aten::copy_", 30, "[[64, 256], [64, 256]]"),
                                      elementwise("aten::mul", 300, dims)})
                            .trace(),
                        "unfused-chain");
  };
  EXPECT_FALSE(with("[[64, 256, 1], [64, 1, 256]]"));
  EXPECT_TRUE(with("[[64, 256], [1, 256]]"));
}

// 30, 20 and 40 us on [256, 1024], and between the first two the cast of a scale for each row, 3 us: one kernel needs 20 us, and the
// cast stays. Half as many elements are no aside: add and relu are the chain then, and the mul is alone.
TEST(UnfusedChainTest, GoesOnAfterAKernelOnAMuchSmallerTensor) {
  const auto with = [](std::string_view dims_between, int add_us = 20) {
    const std::string_view large = "[[256, 1024], [256, 1024]]";
    return find_by_rule(
        after_matmul({elementwise("aten::mul", 30, large), elementwise("aten::to", 3, dims_between),
                      elementwise("aten::add", add_us, large),
                      elementwise("aten::relu", 40, large)})
            .trace(),
        "unfused-chain");
  };
  const auto joined = with("[[256, 1]]");
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->verdict.values[0].integer, 1);
  EXPECT_EQ(joined->at_stake_ns, 70'000);
  const auto cut = with("[[128, 1024]]");
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->at_stake_ns, 40'000);
  // A long kernel after the cast does not part the next one from the chain: 30 + 120 + 40 us, less 30.
  const auto with_long = with("[[256, 1]]", 120);
  ASSERT_TRUE(with_long);
  EXPECT_EQ(with_long->verdict.values[0].integer, 1);
  EXPECT_EQ(with_long->at_stake_ns, 160'000);
}

// Two kernels in one function, and in two.
TEST(UnfusedChainTest, NamesBothPlacesWhereNoOneFunctionHoldsTheChain) {
  const auto action = [](const char* second) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.launch({.us = 300});
      for (const bool is_first : {true, false}) {
        const std::int64_t start_us = p.cpu_us();
        p.pass(1).launch(elementwise(is_first ? "aten::mul" : "aten::add", 30)).pass(1);
        p.sketch().slice("python_function", is_first ? "net.py(7): forward" : second,
                         ProgramSketch::at(start_us), us(p.cpu_us() - start_us));
      }
    });
    const auto finding = find_by_rule(program.trace(), "unfused-chain");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action("net.py(7): forward"), ::testing::HasSubstr("the function that holds them"));
  EXPECT_THAT(action("net.py(20): tail"), ::testing::HasSubstr("from {} to {}"));
}

// Compiled by a backend that calls ATen's operators; or Inductor has fused what it could.
TEST(UnfusedChainTest, KnowsCompiledCodeWithoutGeneratedKernels) {
  const auto action = [](const char* range, std::string_view other) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().launch({.name = other, .us = 300}).begin(range).pass(1);
      program.launch(elementwise("aten::mul", 30)).launch(elementwise("aten::add", 30));
      program.pass(1).end().end();
    }
    const auto finding = find_by_rule(program.trace(), "unfused-chain");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action("Torch-Compiled Region: 0/0", "gemm"), ::testing::HasSubstr("inductor"));
  EXPECT_THAT(action("Torch-Compiled Region: 0/0", "triton_poi_fused_add_0"),
              ::testing::Not(::testing::HasSubstr("inductor")));
  EXPECT_THAT(action("my part", "gemm"), ::testing::Not(::testing::HasSubstr("inductor")));
}

// DistributedDataParallel scales a gradient and copies it into its bucket in a hook after AccumulateGrad; that is no code to
// compile.
TEST(UnfusedChainTest, IsQuietAboutHooksOfAccumulateGrad) {
  const auto chain_in = [](const char* node) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().launch({.us = 300}).begin_op(node);
      program.launch(elementwise("aten::mul", 30)).launch(elementwise("aten::add", 30));
      program.end().end();
    }
    return find_by_rule(program.trace(), "unfused-chain").has_value();
  };
  EXPECT_FALSE(chain_in("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"));
  EXPECT_TRUE(chain_in("autograd::engine::evaluate_function: MulBackward0"));
}

TEST(UnfusedChainTest, SaysNothingOfWaitsWhereThereAreNone) {
  const auto finding = find_by_rule(
      after_matmul({elementwise("aten::mul", 30), elementwise("aten::add", 20)}).trace(),
      "unfused-chain");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, ::testing::Not(::testing::HasSubstr("waits")));
  EXPECT_THAT(finding->arithmetic.at(0).pattern, ::testing::Not(::testing::HasSubstr("waited")));
}

// 10^8 elements of a byte: 2 * 10^8 bytes take an H100 (3350 GB/s) 59,701 ns, more than the 20 us.
TEST(UnfusedChainTest, ReadingAndWritingTheEndsTakesTheBandwidthsTime) {
  constexpr char kLarge[] = "[[100000, 1000]]";
  ProgramSketch program =
      after_matmul({elementwise("aten::mul", 60, kLarge), elementwise("aten::add", 40, kLarge),
                    elementwise("aten::relu", 20, kLarge)});
  program.sketch().metadata(
      "deviceProperties",
      R"([{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0}])");
  const auto finding = find_by_rule(program.trace(), "unfused-chain");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 120'000 - 59'701);
}

TEST(UnfusedChainTest, IsQuietWithoutAChain) {
  // A loop over tensors, other sizes, a matmul between.
  EXPECT_FALSE(
      find_by_rule(after_matmul({elementwise("aten::add_", 30), elementwise("aten::add_", 30),
                                 elementwise("aten::add_", 30)})
                       .trace(),
                   "unfused-chain"));
  EXPECT_FALSE(find_by_rule(
      after_matmul({elementwise("aten::mul", 30), elementwise("aten::add", 30, "[[10, 10]]")})
          .trace(),
      "unfused-chain"));
  EXPECT_FALSE(find_by_rule(
      after_matmul({elementwise("aten::mul", 30), {.us = 30}, elementwise("aten::add", 30)})
          .trace(),
      "unfused-chain"));
}

// mul and add for each of five tensors are five chains, of which 10 us each stay, not one chain.
TEST(UnfusedChainTest, TakesALoopOverTensorsApart) {
  std::vector<Work> works;
  for (int i = 0; i < 5; ++i) {
    works.push_back(elementwise("aten::mul_", 30));
    works.push_back(elementwise("aten::add_", 10));
  }
  const auto finding = find_by_rule(after_matmul(works).trace(), "unfused-chain");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 5);
  EXPECT_EQ(finding->at_stake_ns, 150'000);
}

// The last operator of a step and the first of the next are no chain.
TEST(UnfusedChainTest, EndsWithTheStep) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step()
        .launch(elementwise("aten::mul", 30))
        .launch({.us = 300})
        .launch(elementwise("aten::add", 30))
        .end();
  EXPECT_FALSE(find_by_rule(program.trace(), "unfused-chain"));
}

// 3 us saved of 306: 1 %.
TEST(UnfusedChainTest, IsQuietBelowThreePercent) {
  EXPECT_FALSE(
      find_by_rule(after_matmul({elementwise("aten::mul", 3), elementwise("aten::add", 3)}).trace(),
                   "unfused-chain"));
}

TEST(UnfusedChainTest, NeedsShapes) {
  EXPECT_EQ(state_of_rule(
                after_matmul({elementwise("aten::mul", 30, ""), elementwise("aten::add", 30, "")})
                    .trace(),
                "unfused-chain"),
            RuleRun::State::kNotChecked);
}

// Without shapes, kernels with equally many threads are of one size; others are not, and a step in which the GPU mostly waits is
// left alone.
TEST(UnfusedChainTest, WithoutShapesTheThreadsOfKernelsAreCompared) {
  const auto chain_of = [](std::int64_t second_grid, std::int64_t pause_us) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.kernel("gemm", 100).pass(pause_us);
      p.op("aten::mul", {}, kElementwise, 30, testing::grid(1024, 128));
      for (const char* op : {"aten::add", "aten::relu"})
        p.op(op, {}, kElementwise, 30, testing::grid(second_grid, 128));
    });
    return find_by_rule(program.trace(), "unfused-chain");
  };
  const auto finding = chain_of(1024, 0);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 60'000);
  EXPECT_TRUE(finding->gain_is_bound);
  EXPECT_EQ(chain_of(512, 0)->at_stake_ns, 30'000);
  EXPECT_FALSE(chain_of(1024, 900));
}

// add_ of a bias with 512 elements a block, batch norm with a grid of its own, and SiLU with 1024 a block; and what the norm computes
// of its statistics before. 40 + 20 + 30 us, of which the shortest stays.
TEST(UnfusedChainTest, ReadsSizesFromLoopsAndJoinsNormsThatOnlyScale) {
  constexpr char kLoop[] =
      "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"
      "at::native::CUDAFunctor_add<c10::BFloat16> > >(int)";
  constexpr char kWide[] =
      "void at::native::vectorized_elementwise_kernel<8, at::native::silu_kernel(int), "
      "std::array<char*, 2ul> >(int)";
  constexpr char kApply[] =
      "void at::native::batch_norm_transform_input_channels_last_kernel<c10::BFloat16, float, "
      "c10::BFloat16, 4>(int)";
  const auto finding_of = [&](std::int64_t silu_grid, bool has_statistics) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.kernel("gemm", 100);
      p.op("aten::add_", {}, kLoop, 40, testing::grid(2048, 128));
      if (has_statistics)
        p.op("aten::native_batch_norm", {},
             "void at::native::batch_norm_collect_statistics_channels_last_kernel<float>(int)", 10,
             testing::grid(8, 512));
      p.op("aten::copy_", {}, kElementwise, 1, testing::grid(1, 128));  // of the statistics
      p.op("aten::native_batch_norm", {}, kElementwise, 1, testing::grid(1, 128));
      p.op("aten::native_batch_norm", {}, kApply, 20, testing::grid(512, 512));
      p.op("aten::silu", {}, kWide, 30, testing::grid(silu_grid, 128));
    });
    return find_by_rule(program.trace(), "unfused-chain");
  };
  const auto all = finding_of(1024, false);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->at_stake_ns, us(40 + 20 + 30 - 20));
  // With statistics of the batch, the norm reads the tensor twice: only what follows it can join it.
  const auto after = finding_of(1024, true);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->at_stake_ns, us(30));
}

TEST(UnfusedChainTest, HostileShapesAreNoShapes) {
  for (const char* dims : {"[[9223372036854775807, 9223372036854775807]]", "[[-1]]", "nonsense",
                           "[[[]]]", "{\"a\": 1}"})
    EXPECT_FALSE(find_by_rule(
        after_matmul({elementwise("aten::mul", 30, dims), elementwise("aten::add", 30, dims)})
            .trace(),
        "unfused-chain"))
        << dims;
}

// Inductor calls eager code for complex numbers.
TEST(UnfusedChainTest, LeavesOutComplexNumbers) {
  const auto with_type = [](const std::string& type) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.kernel("gemm", 100);
      for (const char* op : {"aten::mul", "aten::add", "aten::sgn"})
        p.op(op,
             {.input_dims = "[[1000, 500], [1000, 500]]",
              .input_types = "[\"" + type + "\", \"float\"]"},
             kElementwise, 30);
    });
    return find_by_rule(program.trace(), "unfused-chain").has_value();
  };
  EXPECT_TRUE(with_type("float"));
  EXPECT_FALSE(with_type("c10::complex<float>"));
}

// Chains are counted by the step: 7 in three steady steps are about 2.
TEST(UnfusedChainTest, CountsChainsOfAStep) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 300});
    for (int chain = 0; chain < (i == 3 ? 3 : 2); ++chain)
      program.launch(elementwise("aten::mul_", 30))
          .launch(elementwise("aten::add_", 30))
          .launch({.us = 5});
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "unfused-chain");
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->brief.pattern.starts_with("About {} chains"));
  EXPECT_EQ(finding->brief.values.at(0).integer, 2);
}

}  // namespace
}  // namespace lanescope::explain
