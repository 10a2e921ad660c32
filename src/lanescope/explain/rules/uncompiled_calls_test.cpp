#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_elementwise_test.h"
#include "lanescope/explain/rules/uncompiled_code.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Each step: a product, a lookup of 20 us, then `region` around a chain of two kernels of 30 us.
Trace looked_up(const char* lookup, const char* region) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 300}).begin(lookup).pass(20).end().begin(region).pass(1);
    program.launch(elementwise("aten::mul", 30)).launch(elementwise("aten::add", 30));
    program.pass(1).end().end();
  }
  return program.trace();
}

constexpr char kLookup[] = "TorchDynamo Cache Lookup";

TEST(UncompiledCallsTest, SpeaksWhereNoRegionFollowsALookup) {
  const auto finding = find_by_rule(looked_up(kLookup, "my part"), "uncompiled-calls");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, ::testing::HasSubstr("once per step"));
  EXPECT_EQ(finding->arithmetic[0].values[2].integer, us(20));
}

TEST(UncompiledCallsTest, IsQuietWhereItRunsCompiledOrNothingIsUnderCompile) {
  EXPECT_FALSE(find_by_rule(looked_up(kLookup, "Torch-Compiled Region: 0/0"), "uncompiled-calls"));
  EXPECT_FALSE(find_by_rule(looked_up("a range", "my part"), "uncompiled-calls"));
  EXPECT_FALSE(
      find_by_rule(looked_up(kLookup, "compile_inner (dynamo_timed)"), "uncompiled-calls"));
}

// What is under torch.compile already needs another remedy.
TEST(UncompiledCallsTest, NoOtherRuleAdvisesToCompileIt) {
  const auto action = [](const char* lookup) {
    const auto finding = find_by_rule(looked_up(lookup, "my part"), "unfused-chain");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action(kLookup), ::testing::HasSubstr("runs uncompiled"));
  EXPECT_THAT(action("a range"), ::testing::StartsWith("torch.compile the function"));
}

// Where a rule names another remedy first, that one stays.
TEST(UncompiledCallsTest, AnotherRemedyStays) {
  const Trace trace = looked_up(kLookup, "my part");
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  const auto left_of = [&](const Sentence& action) {
    Finding finding;
    finding.action = action;
    rules::leave_out_compiling(*facts, rules::find_uncompiled_code(*facts), finding);
    return finding.action.pattern;
  };
  EXPECT_EQ(left_of(say("Use {}, or torch.compile the module", {name("F.rms_norm")})), "Use {}");
  EXPECT_THAT(left_of(say("Use torch.compile(model), or a larger batch")),
              ::testing::HasSubstr("runs uncompiled"));
  EXPECT_EQ(left_of(say("Use a larger batch")), "Use a larger batch");
}

// With Python frames the trace shows what is under torch.compile: here it is other code.
TEST(UncompiledCallsTest, CodeOutsideOfItMayBeCompiled) {
  const auto action = [](const char* frame) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().launch({.us = 300}).begin(kLookup).pass(20).end();
      const std::int64_t start_us = program.cpu_us();
      program.pass(1).launch(elementwise("aten::mul", 30)).launch(elementwise("aten::add", 30));
      program.pass(1);
      program.sketch().slice("python_function", frame, ProgramSketch::at(start_us),
                             us(program.cpu_us() - start_us));
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "unfused-chain");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action("torch/_dynamo/eval_frame.py(956): compile_wrapper"),
              ::testing::HasSubstr("runs uncompiled"));
  EXPECT_THAT(action("train.py(9): loss"), ::testing::StartsWith("torch.compile the function"));
}

}  // namespace
}  // namespace lanescope::explain
