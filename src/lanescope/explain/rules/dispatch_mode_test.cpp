#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// `calls` operators of 12 us; inside each the detour takes 10 us, of which the operator itself takes 4.
Trace detours(int calls, const char* around) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int i = 0; i < calls; ++i)
      p.begin_op("aten::mm").begin_op(around).pass(2).cpu_op("aten::mm", 4).pass(2).end().end();
  });
  return program.trace();
}

// 2 + 2 us, and 1 us of the detour's own before and after.
TEST(DispatchModeTest, CountsWhatIsNotTheOperators) {
  const auto finding = find_by_rule(detours(20, "PythonDispatchMode"), "dispatch-mode");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 20);
  EXPECT_EQ(finding->at_stake_ns, us(20 * 6));
}

TEST(DispatchModeTest, IsQuietAboutAFewOrOthers) {
  EXPECT_FALSE(find_by_rule(detours(19, "PythonDispatchMode"), "dispatch-mode"));
  EXPECT_FALSE(find_by_rule(detours(20, "aten::mm_out"), "dispatch-mode"));
}

// 40 operators through the mode, then 50 without it, in a recording without steps: torch.export.
TEST(DispatchModeTest, KnowsTracingThatHappensOnce) {
  ProgramSketch program;
  for (int i = 0; i < 40; ++i)
    program.begin_op("aten::mm").begin_op("PythonDispatchMode").pass(8).end().end();
  for (int i = 0; i < 50; ++i) program.cpu_op("aten::mm", 4);
  const auto finding = find_by_rule(program.trace(), "dispatch-mode");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kOnce);
  EXPECT_TRUE(finding->leads);  // 400 of 600 us
  EXPECT_NE(finding->action.pattern.find("torch.export.save"), std::string::npos);
}

// Few operators after it: a loop may end in some that do without.
TEST(DispatchModeTest, CallsNoLoopThatEndsWithoutTheModeTracing) {
  ProgramSketch program;
  for (int i = 0; i < 40; ++i)
    program.begin_op("aten::mm").begin_op("PythonDispatchMode").pass(8).end().end();
  for (int i = 0; i < 30; ++i) program.cpu_op("aten::mm", 4);
  const auto finding = find_by_rule(program.trace(), "dispatch-mode");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
}

// torch.compile's own: its trial runs pass through the mode of fake tensors.
TEST(DispatchModeTest, IsQuietAboutCompiling) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin("_compile.compile_inner (dynamo_timed)");
    for (int i = 0; i < 30; ++i)
      p.begin_op("PythonDispatchMode").pass(2).cpu_op("aten::mm", 4).pass(2).end();
    p.end();
  });
  EXPECT_FALSE(find_by_rule(program.trace(), "dispatch-mode"));
}

// `calls` calls of 16 us to a method of a subclass, which calls torch's, which calls an operator of 4 us.
Trace subclass(int calls, const char* method, const char* inner) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int i = 0; i < calls; ++i) {
      const std::int64_t start_us = p.cpu_us();
      p.sketch().slice("python_function", method, ProgramSketch::at(start_us), us(16));
      p.sketch().slice("python_function", inner, ProgramSketch::at(start_us + 4), us(8));
      p.pass(6).cpu_op("aten::mul", 4).pass(6);
    }
  });
  return program.trace();
}

// The two methods of one operator are one detour of 12 us without the operator.
TEST(DispatchModeTest, KnowsTensorSubclasses) {
  const auto finding = find_by_rule(
      subclass(20, "units.py(9): __torch_function__", "torch/_tensor.py(1681): __torch_function__"),
      "dispatch-mode");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 20);
  EXPECT_EQ(finding->at_stake_ns, us(20 * 12));
  EXPECT_NE(finding->action.pattern.find("as_subclass"), std::string::npos);
}

TEST(DispatchModeTest, KnowsTheDefaultDevice) {
  const auto finding = find_by_rule(
      subclass(20, "torch/utils/_device.py(103): __torch_function__", "<built-in method zeros>"),
      "dispatch-mode");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->action.pattern.find("device="), std::string::npos);
}

TEST(DispatchModeTest, IsQuietAboutAFewMethodsOrOtherFunctions) {
  EXPECT_FALSE(find_by_rule(subclass(19, "units.py(9): __torch_function__", "units.py(2): f"),
                            "dispatch-mode"));
  EXPECT_FALSE(find_by_rule(subclass(20, "units.py(9): wrap", "units.py(2): f"), "dispatch-mode"));
}

}  // namespace
}  // namespace lanescope::explain
