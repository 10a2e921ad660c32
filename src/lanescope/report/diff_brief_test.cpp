#include "lanescope/report/diff_brief.h"

#include <gtest/gtest.h>

#include "lanescope/explain/compare_headline.h"
#include "lanescope/testing/program_sketch.h"

namespace lanescope::report {
namespace {

using testing::ProgramSketch;

// Steps of `gemm_us` on the GPU each, launched one step ahead of it: GPU-bound.
Trace training(std::vector<std::int64_t> gemm_us) {
  ProgramSketch sketch;
  for (const std::int64_t us : gemm_us) {
    sketch.step();
    sketch.launch({.name = "gemm", .us = us});
    sketch.launch({.name = "add", .us = 5, .op = "aten::add"});
    sketch.wait().end();
  }
  return sketch.trace();
}

struct Compared {
  Compared(Trace a_trace, Trace b_trace)
      : a(std::move(a_trace)),
        b(std::move(b_trace)),
        a_facts(*explain::gather_facts(a, {.step = {}, .count_long_step = true})),
        b_facts(*explain::gather_facts(b, {.step = {}, .count_long_step = true})),
        result(explain::compare(a_facts, b_facts)) {}
  Trace a, b;
  explain::Facts a_facts, b_facts;
  explain::Comparison result;
};

TEST(DiffBriefTest, ALongerKernelIsTheOnlyPart) {
  const Compared pair(training({100, 100, 100, 100, 100}), training({130, 130, 130, 130, 130}));
  const DiffBrief brief = diff_brief(pair.result);
  // The walls differ by the 30 us of the gemm, 25.6 % of A's 117 us: gemm, add and 12 us of idle time.
  const std::int64_t a = explain::compare_wall_ns(pair.result, true);
  ASSERT_EQ(explain::compare_wall_ns(pair.result, false), a + 30'000);
  EXPECT_EQ(brief.verdict, "A step takes 147 us in B and 117 us in A: 26 % more.");
  ASSERT_EQ(brief.parts.size(), 1u);
  EXPECT_EQ(brief.parts[0].delta_ns, 30'000);
  EXPECT_TRUE(brief.parts[0].text.starts_with("per call of the same kernels (most of it gemm"))
      << brief.parts[0].text;
  EXPECT_EQ(
      brief.caution,
      "Medians of 4 and 4 steps: 147 us in B and 117 us in A; a step varies by 0 us in B and 0 us "
      "in A.");
}

TEST(DiffBriefTest, EqualTracesHaveNoPartsAndNoCaution) {
  const Compared pair(training({100, 100, 100, 100}), training({100, 100, 100, 100}));
  const DiffBrief brief = diff_brief(pair.result);
  EXPECT_EQ(brief.verdict, "Every number of A and B is the same.");
  EXPECT_TRUE(brief.parts.empty());
  EXPECT_EQ(brief.caution, "");
}

TEST(DiffBriefTest, FewStepsAreACaution) {
  const Compared pair(training({100, 100, 100}), training({200, 200, 200}));
  const DiffBrief brief = diff_brief(pair.result);
  EXPECT_EQ(brief.caution, "Only 2 steps of A and 2 of B: too few to show how much steps vary.");
}

}  // namespace
}  // namespace lanescope::report
