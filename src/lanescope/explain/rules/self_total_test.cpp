#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

// Three steps of 1000: aten::linear [100, 300) with aten::t [102, 110) and aten::addmm [120, 280),
// which may hold a cudaLaunchKernel [200, 210), and aten::relu [400, 450).
Trace nested_operators(bool nested) {
  testing::Sketch sketch;
  for (int step = 0; step < 3; ++step) {
    const std::int64_t at = us(1000 * step);
    sketch.annotation("ProfilerStep#" + std::to_string(step), at, us(1000));
    sketch.op("aten::linear", at + us(100), us(200));
    if (nested) {
      sketch.op("aten::t", at + us(102), us(8));
      sketch.op("aten::addmm", at + us(120), us(160));
      sketch.runtime("cudaLaunchKernel", at + us(200), us(10));
    }
    sketch.op("aten::relu", at + us(400), us(50));
  }
  return sketch.trace();
}

TEST(SelfTotalTest, SaysWhatATotalIsMadeOf) {
  const auto finding = find_by_rule(nested_operators(true), "self-total");
  ASSERT_TRUE(finding);
  const auto& values = finding->verdict.values;
  ASSERT_EQ(values.size(), 6u);
  EXPECT_EQ(values[0].text, "aten::linear");
  EXPECT_EQ(values[1].integer, us(200));
  EXPECT_EQ(values[2].integer, us(32));                  // 200 - 8 - 160
  EXPECT_EQ(values[3].integer, us(200 + 8 + 160 + 50));  // totals
  EXPECT_DOUBLE_EQ(values[4].real, 418.0 / 250);
  EXPECT_EQ(values[5].integer, us(250));  // linear and relu
  ASSERT_EQ(finding->arithmetic.size(), 1u);
  EXPECT_EQ(finding->arithmetic[0].pattern, "{} = itself {} + {} {} + {} {}");
  EXPECT_EQ(finding->arithmetic[0].values[2].text, "aten::addmm");
  EXPECT_EQ(finding->arithmetic[0].values[3].integer, us(160));
  EXPECT_EQ(finding->arithmetic[0].values[5].integer, us(8));
}

TEST(SelfTotalTest, IsQuietWhereOperatorsDoNotCallEachOther) {
  EXPECT_FALSE(find_by_rule(nested_operators(false), "self-total"));
}

TEST(SelfTotalTest, SpeaksOnlyWhenAsked) {
  const Trace trace = nested_operators(true);
  const auto all = run_rules(*gather_facts(trace));
  ASSERT_TRUE(all);
  EXPECT_TRUE(std::none_of(all->runs.begin(), all->runs.end(),
                           [](const RuleRun& run) { return run.id == "self-total"; }));
}

}  // namespace
}  // namespace lanescope::explain
