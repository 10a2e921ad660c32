// Rules about fusion and torch.compile, on drawn programs. Microseconds; the first step is
// start-up.
#include <gmock/gmock.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;
using Work = ProgramSketch::Work;

constexpr char kSmallSquare[] = "[[1000, 1000], []]";

// A long matmul, so that the queue is full, and then these operators, one kernel each.
ProgramSketch after_matmul(const std::vector<Work>& works) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 300});
    for (const Work& work : works) program.launch(work);
    program.end();
  }
  return program;
}

Work elementwise(std::string_view op, std::int64_t us, std::string_view dims = kSmallSquare) {
  return {.name = kElementwise, .us = us, .op = op, .dims = dims};
}

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

TEST(UnfusedChainTest, HostileShapesAreNoShapes) {
  for (const char* dims : {"[[9223372036854775807, 9223372036854775807]]", "[[-1]]", "nonsense",
                           "[[[]]]", "{\"a\": 1}"})
    EXPECT_FALSE(find_by_rule(
        after_matmul({elementwise("aten::mul", 30, dims), elementwise("aten::add", 30, dims)})
            .trace(),
        "unfused-chain"))
        << dims;
}

// RMSNorm as written out: 20 + 20 + 2 + 2 + 20 us; the last multiplication stays.
TEST(UnfusedNormTest, SpeaksOfAnRmsNormInOperators) {
  const auto finding =
      find_by_rule(after_matmul({elementwise("aten::pow", 20), elementwise("aten::mean", 20),
                                 elementwise("aten::add", 2), elementwise("aten::rsqrt", 2),
                                 elementwise("aten::mul", 20)})
                       .trace(),
                   "unfused-norm");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 44'000);
  EXPECT_EQ(finding->evidence[0].text.values[0].text, "RMSNorm");
}

// 10 + 20 + 5 + 20 + 20 us; the shortest pass over the tensor is the cast, of which half stays.
TEST(UnfusedNormTest, SpeaksOfARotaryEmbeddingWithCastsBetween) {
  const auto finding =
      find_by_rule(after_matmul({elementwise("aten::neg", 10), elementwise("aten::cat", 20),
                                 elementwise("aten::copy_", 5), elementwise("aten::mul", 20),
                                 elementwise("aten::add", 20)})
                       .trace(),
                   "unfused-norm");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 72'500);
  EXPECT_EQ(finding->evidence[0].text.values[0].text, "rotary embedding");
}

// With casts at both ends and the weight: all eight kernels are the norm's. 15 + 20 + 10 + 2 + 2 +
// 20
// + 15 + 10 us, of which half of the weight's multiplication stays.
TEST(UnfusedNormTest, TakesTheCastsAndTheWeightWithIt) {
  const Trace trace = after_matmul({elementwise("aten::copy_", 15), elementwise("aten::pow", 20),
                                    elementwise("aten::mean", 10), elementwise("aten::add", 2),
                                    elementwise("aten::rsqrt", 2), elementwise("aten::mul", 20),
                                    elementwise("aten::copy_", 15), elementwise("aten::mul", 10)})
                          .trace();
  const auto finding = find_by_rule(trace, "unfused-norm");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[1].integer, 94'000);
  EXPECT_EQ(finding->at_stake_ns, 89'000);
  // The place to look is in the middle: casts at the ends may belong to the code around it.
  EXPECT_EQ(trace.dur_ns(finding->evidence[0].slice), 2'000);
}

TEST(UnfusedNormTest, IsQuietWhenAnotherOperatorIsBetweenOrItIsFused) {
  EXPECT_FALSE(
      find_by_rule(after_matmul({elementwise("aten::pow", 20), elementwise("aten::mean", 20),
                                 elementwise("aten::silu", 20), elementwise("aten::rsqrt", 2),
                                 elementwise("aten::mul", 20)})
                       .trace(),
                   "unfused-norm"));
  EXPECT_FALSE(find_by_rule(after_matmul({elementwise("aten::native_layer_norm", 60)}).trace(),
                            "unfused-norm"));
}

// A step of two pieces: a graph, .item(), and what is left, 50 us of Python before its launch. The
// GPU is done 19 us after the step began and gets its next work launched at 79: 60 us in between.
ProgramSketch with_break(bool inside) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin("Torch-Compiled Region: 0/0").begin("## Call CompiledFxGraph fabc ##");
    program.launch({}).end();
    if (!inside) program.end();
    program.wait("aten::item").begin("Torch-Compiled Region: 1/0").pass(50).launch({}).end();
    if (inside) program.end();
    program.end();
  }
  return program;
}

TEST(GraphBreaksTest, SpeaksOfARegionInsideARegion) {
  const auto finding = find_by_rule(with_break(true).trace(), "graph-breaks");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 3);  // breaks, in three calls
  EXPECT_EQ(finding->verdict.values[1].integer, 3);
  EXPECT_EQ(finding->at_stake_ns, 60'000);
  ASSERT_EQ(finding->evidence.size(), 1u);
  EXPECT_EQ(finding->evidence[0].text.values[2].text, "aten::item");
}

TEST(GraphBreaksTest, IsQuietOnFunctionsCompiledSeparately) {
  EXPECT_FALSE(find_by_rule(with_break(false).trace(), "graph-breaks"));
}

ProgramSketch compiling_in(int compiled_step) {
  ProgramSketch program;
  for (int i = 1; i <= 4; ++i) {
    program.step().launch({});
    if (i == compiled_step) {
      program.begin("_compile.compile_inner (dynamo_timed)").pass(1000);
      program.begin("dynamo_data: compile_id=2/1").pass(1).end().pass(1999).end();
    }
    program.launch({}).end();
  }
  return program;
}

// 3 ms in one of three steady steps; the launch before it still runs for 9 us of them.
TEST(RecompilesTest, SpeaksOfCompilingInASteadyStep) {
  const auto finding = find_by_rule(compiling_in(3).trace(), "recompiles");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 1);
  EXPECT_EQ(finding->verdict.values[2].integer, 1'000'000);
  EXPECT_EQ(finding->at_stake_ns, 997'000);
  EXPECT_EQ(finding->evidence[0].text.values[0].text, "2/1");
  EXPECT_FALSE(find_by_rule(compiling_in(3).trace(), "cold-compile"));
}

TEST(RecompilesTest, TheFirstStepsCompilingIsAColdStart) {
  EXPECT_FALSE(find_by_rule(compiling_in(1).trace(), "recompiles"));
  const auto finding = find_by_rule(compiling_in(1).trace(), "cold-compile");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kOnce);
  EXPECT_EQ(finding->at_stake_ns, 3'000'000);
}

TEST(RecompilesTest, AreQuietWithoutCompiling) {
  EXPECT_FALSE(find_by_rule(compiling_in(0).trace(), "recompiles"));
  EXPECT_FALSE(find_by_rule(compiling_in(0).trace(), "cold-compile"));
}

// A lookup of 20 us and a region that launches after 30 more.
ProgramSketch compiled_call(std::int64_t kernel_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin("TorchDynamo Cache Lookup").pass(20).end();
    program.begin("Torch-Compiled Region: 0/0").pass(10).begin("## Call CompiledFxGraph fa ##");
    program.pass(20).launch({.us = kernel_us}).end().end().end();
  }
  return program;
}

// A step of 60 us, kernel [59, 64): then the GPU waits for the launch that ends at 117. Of these 53
// us 46 are the compiler's ([64, 110) of lookup, region and graph), the rest the operator's.
TEST(CompileOverheadTest, SpeaksWhenTheGpuWaitsForTheLayers) {
  const auto finding = find_by_rule(compiled_call(5).trace(), "compile-overhead");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 46'000);
}

TEST(CompileOverheadTest, LeavesBrokenCallsToGraphBreaks) {
  EXPECT_FALSE(find_by_rule(with_break(true).trace(), "compile-overhead"));
}

TEST(CompileOverheadTest, IsQuietWhenTheGpuIsBusy) {
  EXPECT_FALSE(find_by_rule(compiled_call(200).trace(), "compile-overhead"));
}

TEST(CompileLayersTest, NamesTheTimeOfEachLayerPerCall) {
  const auto finding = find_by_rule(compiled_call(200).trace(), "compile-layers");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
  EXPECT_EQ(finding->verdict.values[0].integer, 20'000);  // lookup
  EXPECT_EQ(finding->verdict.values[1].integer, 10'000);  // region
  EXPECT_EQ(finding->verdict.values[2].integer, 0);       // prologue
  EXPECT_EQ(finding->verdict.values[3].integer, 20'000);  // graph, its operator left out
}

// A step of one generated kernel of 30 us from a compiled graph and 90 us of eager work.
TEST(CompiledCodeTest, SaysHowMuchCompiledGraphsLaunched) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step()
        .begin("Torch-Compiled Region: 0/0")
        .pass(1)
        .begin("## Call CompiledFxGraph fa ##");
    program.pass(1).launch({.name = "triton_poi_fused_add_mul_0", .us = 30}).end().end();
    program.launch({.us = 90}).end();
  }
  const auto finding = find_by_rule(program.trace(), "compiled-code");
  ASSERT_TRUE(finding);
  ASSERT_EQ(finding->arithmetic.size(), 2u);
  EXPECT_DOUBLE_EQ(finding->arithmetic[1].values[0].real, 0.25);
  EXPECT_THAT(finding->try_next, ::testing::Contains(::testing::HasSubstr("not compiled")));
}

TEST(CompileLayersTest, IsQuietInAnEagerProgram) {
  EXPECT_FALSE(find_by_rule(after_matmul({}).trace(), "compile-layers"));
}

}  // namespace
}  // namespace lanescope::explain
