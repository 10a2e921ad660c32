#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Forty parameters, two kernels of 1 us each.
ProgramSketch optimizer_of(std::string_view first, std::string_view second) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin("Optimizer.step#SGD.step");
    for (int k = 0; k < 40; ++k)
      program.launch({.name = kElementwise, .us = 1, .op = first})
          .launch({.name = kElementwise, .us = 1, .op = second});
    program.end().end();
  }
  return program;
}

// Each of 80 launches finds the GPU waiting for 7 us; of 80 us of kernels one pass, 40 us, stays.
TEST(OptimizerLoopTest, SpeaksOfOneKernelAParameter) {
  const auto finding =
      find_by_rule(optimizer_of("aten::mul_", "aten::add_").trace(), "optimizer-loop");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 80);
  EXPECT_EQ(finding->verdict.values[2].integer, us(560));
  EXPECT_EQ(finding->at_stake_ns, us(560 + 80 - 40));
  EXPECT_EQ(finding->arithmetic[0].values[2].integer, 40);  // tensors
}

// 80 kernels of 20 us: the launches, 10 us each, stay ahead of the GPU.
TEST(OptimizerLoopTest, SaysNothingOfWaitsWhereThereAreNone) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 2000}).begin("Optimizer.step#SGD.step");
    for (int k = 0; k < 40; ++k)
      program.launch({.name = kElementwise, .us = 20, .op = "aten::mul_"})
          .launch({.name = kElementwise, .us = 20, .op = "aten::add_"});
    program.end().end();
  }
  const auto finding = find_by_rule(program.trace(), "optimizer-loop");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(1600 - 800));
  EXPECT_EQ(finding->verdict.values.size(), 2u);
  EXPECT_THAT(finding->verdict.pattern, ::testing::Not(::testing::HasSubstr("waits")));
  EXPECT_THAT(finding->arithmetic.at(0).pattern, ::testing::StartsWith("kernels {}"));
}

// Forty kernels in each of two calls of foreach; in loops of the optimizer's own.
TEST(OptimizerLoopTest, KnowsForeachThatGoesTensorByTensor) {
  const auto finding_with = [](std::string_view list) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().begin("Optimizer.step#Adam.step");
      for (int call = 0; call < 2; ++call) {
        program.begin_op(list);
        for (int k = 0; k < 40; ++k)
          program.launch({.name = kElementwise, .us = 1, .op = "aten::div_"});
        program.end();
      }
      program.end().end();
    }
    return find_by_rule(program.trace(), "optimizer-loop").value_or(Finding());
  };
  const Finding slow = finding_with("aten::_foreach_div_");
  EXPECT_EQ(slow.brief.values.at(0).text, "aten::_foreach_div_");
  EXPECT_THAT(slow.action.pattern, ::testing::Not(::testing::HasSubstr("foreach")));
  EXPECT_THAT(finding_with("my part").action.pattern, ::testing::HasSubstr("foreach=True"));
}

// Forty parameters; after the two kernels of each, the CPU reads a value of every `read_every`th; 0: of none.
Finding finding_of_class(std::string_view range, int read_every) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin(range);
    for (int k = 0; k < 40; ++k) {
      program.launch({.name = kElementwise, .us = 1, .op = "aten::mul_"})
          .launch({.name = kElementwise, .us = 1, .op = "aten::add_"});
      if (read_every > 0 && k % read_every == 0)
        program.launch(
            {.name = "Memcpy DtoH (Device -> Pinned)", .us = 1, .op = "aten::_local_scalar_dense"});
    }
    program.end().end();
  }
  return find_by_rule(program.trace(), "optimizer-loop").value_or(Finding());
}

TEST(OptimizerLoopTest, NamesOnlyWhatTheOptimizerHas) {
  const Finding fused = finding_of_class("Optimizer.step#AdamW.step", 0);
  EXPECT_EQ(fused.action.pattern, "Pass fused=True to {}, or else foreach=True");
  EXPECT_EQ(fused.action.values.at(0).text, "AdamW");
  const Finding foreach = finding_of_class("Optimizer.step#Adafactor.step", 0);
  EXPECT_EQ(foreach.action.pattern, "Pass foreach=True to torch.optim.{}: it has no fused form");
  EXPECT_THAT(foreach.verdict.pattern, ::testing::Not(::testing::HasSubstr("fused")));
  EXPECT_THAT(finding_of_class("Optimizer.step#Muon.step", 0).action.pattern,
              ::testing::HasSubstr("has no faster form"));
  EXPECT_THAT(finding_of_class("Optimizer.step#Lion.step", 0).action.pattern,
              ::testing::HasSubstr("if it has them"));
}

// Twenty reads for forty tensors are half; fourteen are not.
// An optimizer's step is not differentiated, so torch.compile may still get it.
TEST(OptimizerLoopTest, KeepsItsFormsNextToADoubleBackward) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin_op("autograd::engine::evaluate_function: TanhBackwardBackward0").kernel("mul", 2).end();
    p.begin("Optimizer.step#MyOpt.step");
    for (int k = 0; k < 80; ++k) p.launch({.name = kElementwise, .us = 1, .op = "aten::mul_"});
    p.end();
  });
  const auto finding = find_by_rule(program.trace(), "optimizer-loop");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("fused=True"));
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("torch.compile(optimizer.step)"));
}

TEST(OptimizerLoopTest, PredictsNothingWhereEachTensorIsRead) {
  EXPECT_TRUE(finding_of_class("Optimizer.step#Adafactor.step", 2).gain_is_bound);
  EXPECT_EQ(
      finding_of_class("Optimizer.step#Adafactor.step", 2).arithmetic.back().values.at(0).integer,
      20);
  EXPECT_FALSE(finding_of_class("Optimizer.step#Adafactor.step", 3).gain_is_bound);
}

TEST(OptimizerLoopTest, IsQuietOnForeachAndFused) {
  EXPECT_FALSE(find_by_rule(optimizer_of("aten::_foreach_mul_", "aten::_fused_adam_").trace(),
                            "optimizer-loop"));
}

// Traces of PyTorch before 1.12, which had neither form.
TEST(OptimizerLoopTest, AdvisesNoFormThatTheVersionLacks) {
  ProgramSketch program = optimizer_of("aten::mul_", "aten::add_");
  program.sketch().slice("Operator", "aten::add", 0, 10);
  const auto finding = find_by_rule(program.trace(), "optimizer-loop");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::EndsWith("needs PyTorch 1.12 or later"));
}

}  // namespace
}  // namespace lanescope::explain
