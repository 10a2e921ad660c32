#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_elementwise_test.h"

namespace lanescope::explain {
namespace {

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

// Each kind with its own number of runs: the time of one is not shown as that of the other.
TEST(UnfusedNormTest, NamesEachKindOnTheFirstScreen) {
  const auto finding =
      find_by_rule(after_matmul({elementwise("aten::pow", 20), elementwise("aten::mean", 20),
                                 elementwise("aten::add", 2), elementwise("aten::rsqrt", 2),
                                 elementwise("aten::mul", 20), elementwise("aten::neg", 10),
                                 elementwise("aten::cat", 20), elementwise("aten::mul", 20),
                                 elementwise("aten::add", 20)})
                       .trace(),
                   "unfused-norm");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.pattern.substr(0, 16), "{} x {}, {} x {}");
  EXPECT_EQ(finding->brief.values.at(1).text, "rotary embedding");
  EXPECT_EQ(finding->brief.values.at(3).text, "RMSNorm");
  EXPECT_EQ(finding->action.values.at(0).text,
            "Use a fused rotary kernel, torch.nn.RMSNorm / F.rms_norm");
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

// Compiled with a backend that generates no kernels: compiling it is no choice.
TEST(UnfusedNormTest, NamesTheBackendOfCompiledCode) {
  const auto action = [](const char* range) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().begin(range).pass(1).launch({.name = "gemm", .us = 300});
      for (const auto& [op, time] :
           {std::pair{"aten::pow", 20}, std::pair{"aten::mean", 20}, std::pair{"aten::add", 2},
            std::pair{"aten::rsqrt", 2}, std::pair{"aten::mul", 20}})
        program.launch(elementwise(op, time));
      program.pass(1).end().end();
    }
    return find_by_rule(program.trace(), "unfused-norm").value_or(Finding()).action.pattern;
  };
  EXPECT_THAT(action("Torch-Compiled Region: 0/0"), ::testing::HasSubstr("inductor"));
  EXPECT_THAT(action("my part"), ::testing::HasSubstr("torch.compile the module"));
}

}  // namespace
}  // namespace lanescope::explain
