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
  EXPECT_EQ(finding->brief.values.at(0).text, "train.py:65 dice");
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

// Its wait and its copy are a part of it, so the first screen tells them once.
TEST(ValuesOnCpuTest, IsToldOnce) {
  const Trace trace = draw_metric({});
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  const auto all = run_rules(*facts, {});
  ASSERT_TRUE(all);
  std::vector<std::string> rules;
  for (const Suggestion& each : do_first(*facts, *all))
    rules.push_back(all->findings[each.finding].rule);
  EXPECT_THAT(rules, ::testing::Contains("values-on-cpu"));
  EXPECT_THAT(rules, ::testing::Not(::testing::Contains("pageable-copy")));
}

}  // namespace
}  // namespace lanescope::explain
