#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "lanescope/explain/do_first.h"
#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

struct DrawnMetric {
  std::int64_t python_us = 300;  // after the copy
  bool has_kernel = false;       // in the function
  const char* file = "train.py";
  const char* calls = "";     // a frame of a library in the function
  std::int64_t calls_us = 0;  // how much of python_us it takes
};

// A step: a product of 500 us, for which the CPU waits; then a function that copies its result for 100 us and computes in NumPy.
Trace draw_metric(const DrawnMetric& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.kernel("gemm", 500).call("cudaDeviceSynchronize", 500);
    const std::int64_t start = p.cpu_us();
    p.pass(1).begin_op("aten::to").copy(100, 1 << 20, "Memcpy DtoH (Device -> Pageable)");
    p.call("cudaStreamSynchronize", 105).end();
    if (drawn.has_kernel) p.kernel("sum", 5);
    if (drawn.calls_us > 0)
      p.sketch().slice("python_function", drawn.calls, us(p.cpu_us()), us(drawn.calls_us), {});
    p.pass(drawn.python_us);
    p.sketch().slice("python_function", std::string(drawn.file) + "(65): dice", us(start),
                     us(p.cpu_us() - start), {});
  });
  return program.trace();
}

// The function: 1 us, the operator's 1 + 1 + 105 + 1 us, 300 us. The product ends in its first microsecond.
TEST(ValuesOnCpuTest, CountsTheWholeFunction) {
  const auto finding = find_by_rule(draw_metric({}), "values-on-cpu");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values.at(0).text, "dice (train.py:65)");
  EXPECT_EQ(finding->brief.values.at(1).integer, us(409));
  EXPECT_EQ(finding->at_stake_ns, us(408));
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("on the GPU"));
}

// A function that launches kernels is more than a metric; one that hardly computes only reads; a library's is not the program's.
TEST(ValuesOnCpuTest, IsQuietAboutOtherFunctions) {
  EXPECT_FALSE(find_by_rule(draw_metric({.has_kernel = true}), "values-on-cpu"));
  EXPECT_FALSE(find_by_rule(draw_metric({.python_us = 20}), "values-on-cpu"));
  EXPECT_FALSE(find_by_rule(draw_metric({.file = "torch/serialization.py"}), "values-on-cpu"));
}

// Half of the 300 us, and 1 us before the copy, in which nothing else is recorded. What numpy does may be a metric.
TEST(ValuesOnCpuTest, LeavesSavingAndLoggingToTheirRules) {
  for (const char* frame : {"torch/serialization.py(945): save", "PIL/Image.py(2400): save",
                            "json/__init__.py(183): dumps"}) {
    EXPECT_FALSE(find_by_rule(draw_metric({.calls = frame, .calls_us = 160}), "values-on-cpu"));
    EXPECT_TRUE(find_by_rule(draw_metric({.calls = frame, .calls_us = 140}), "values-on-cpu"));
  }
  EXPECT_TRUE(find_by_rule(
      draw_metric({.calls = "numpy/_core/fromnumeric.py(3735): mean", .calls_us = 280}),
      "values-on-cpu"));
}

// Its wait and its copy are a part of it, so the first screen tells them once. Without this rule they are told.
TEST(ValuesOnCpuTest, IsToldOnce) {
  const Trace trace = draw_metric({});
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  const auto rules_without = [&](const std::vector<std::string>& off) {
    const auto all = run_rules(*facts, {.only = {}, .off = off});
    EXPECT_TRUE(all);
    std::vector<std::string> rules;
    for (const Suggestion& each : do_first(*facts, *all))
      rules.push_back(all->findings[each.finding].rule);
    return rules;
  };
  EXPECT_THAT(rules_without({}), ::testing::Contains("values-on-cpu"));
  EXPECT_THAT(rules_without({}), ::testing::Not(::testing::Contains("pageable-copy")));
  EXPECT_THAT(rules_without({"values-on-cpu"}), ::testing::Contains("pageable-copy"));
}

}  // namespace
}  // namespace lanescope::explain
