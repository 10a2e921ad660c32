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

// Four steps of 20 calls to a method of a subclass, of 16 us each, in which an operator takes 4. In one of each step's calls, 1 ms goes by
// in `inner`.
Trace with_long_call(const char* category, const char* inner) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int i = 0; i < 20; ++i) {
      const std::int64_t start_us = p.cpu_us(), more_us = i == 10 ? 1000 : 0;
      p.sketch().slice("python_function", "units.py(9): __torch_function__",
                       ProgramSketch::at(start_us), us(16 + more_us));
      if (more_us > 0)
        p.sketch().slice(category, inner, ProgramSketch::at(start_us + 2), us(more_us));
      p.pass(6 + more_us).cpu_op("aten::mul", 4).pass(6);
    }
  });
  return program.trace();
}

// While backward runs on another thread, the method only waits. Other functions are the method's own.
TEST(DispatchModeTest, LeavesOutBackwardPasses) {
  const auto at_stake_us = [](const char* inner) {
    const auto finding = find_by_rule(with_long_call("python_function", inner), "dispatch-mode");
    EXPECT_TRUE(finding);
    return finding ? finding->at_stake_ns / 1000 : 0;
  };
  EXPECT_EQ(at_stake_us("<built-in method run_backward of torch._C._EngineBase object at 0x1>"),
            20 * 12);
  EXPECT_EQ(at_stake_us("units.py(20): convert"), 20 * 12 + 1000);
}

// Four steps of 20 such calls between two kernels. In one call of the third step, `call` takes 900 us.
std::int64_t at_stake_with(const char* call) {
  ProgramSketch program;
  int step = 0;
  program.steps(4, [&](ProgramSketch& p) {
    ++step;
    p.launch({.us = 5}).pass(20);
    for (int i = 0; i < 20; ++i) {
      const bool is_long = call && step == 3 && i == 10;
      p.sketch().slice("python_function", "units.py(9): __torch_function__",
                       ProgramSketch::at(p.cpu_us()), us(is_long ? 916 : 16));
      p.pass(6).cpu_op("aten::mul", 4);
      if (is_long) p.call(call, 900);
      p.pass(6);
    }
    p.launch({.us = 5});
  });
  const auto finding = find_by_rule(program.trace(), "dispatch-mode");
  EXPECT_TRUE(finding);
  return finding ? finding->at_stake_ns : 0;
}

// Loading a module is start-up, which another finding tells. Any other call in the method is the method's.
TEST(DispatchModeTest, LeavesOutFirstUses) {
  EXPECT_EQ(at_stake_with(nullptr), us(20 * 12));
  EXPECT_EQ(at_stake_with("cuModuleLoadData"), us(20 * 12));
  EXPECT_EQ(at_stake_with("cudaHostRegister"), us(20 * 12 + 900 / 3));
}

TEST(DispatchModeTest, IsQuietAboutAFewMethodsOrOtherFunctions) {
  EXPECT_FALSE(find_by_rule(subclass(19, "units.py(9): __torch_function__", "units.py(2): f"),
                            "dispatch-mode"));
  EXPECT_FALSE(find_by_rule(subclass(20, "units.py(9): wrap", "units.py(2): f"), "dispatch-mode"));
}

}  // namespace
}  // namespace lanescope::explain
