#include "lanescope/explain/compare.h"

#include <gtest/gtest.h>

#include "lanescope/testing/program_sketch.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Steps of `gemm_us` on the GPU each, launched one step ahead of it: GPU-bound.
Trace training(std::vector<std::int64_t> gemm_us, std::string_view kernel_name = "gemm") {
  ProgramSketch sketch;
  for (const std::int64_t us : gemm_us) {
    sketch.step();
    sketch.launch({.name = kernel_name, .us = us});
    sketch.launch({.name = "add", .us = 5, .op = "aten::add"});
    sketch.wait().end();
  }
  return sketch.trace();
}

// Rounds of one pass and `updates` steps of an optimizer; marked or found.
Trace updates(int rounds, int updates, bool is_marked) {
  ProgramSketch sketch;
  for (int i = 0; i < rounds; ++i) {
    if (is_marked) sketch.step();
    for (int k = 0; k < updates; ++k) {
      sketch.launch({.name = "gemm", .us = 50}).launch({.name = "gradient", .us = 50});
      sketch.begin("Optimizer.step#Adam.step").launch({.name = "adam", .us = 20}).end().wait();
    }
    if (is_marked) sketch.end();
  }
  return sketch.trace();
}

analysis::Iterations found_by(analysis::IterationMark kind, std::string mark,
                              std::string owner = {}) {
  analysis::Iterations found;
  found.kind = kind;
  found.mark = std::move(mark);
  found.owner = std::move(owner);
  return found;
}

struct Pair {
  Pair(Trace a_trace, Trace b_trace)
      : a(std::move(a_trace)),
        b(std::move(b_trace)),
        a_facts(*gather_facts(a, {.step = {}, .count_long_step = true})),
        b_facts(*gather_facts(b, {.step = {}, .count_long_step = true})),
        result(compare(a_facts, b_facts)) {}
  Trace a, b;
  Facts a_facts, b_facts;
  Comparison result;
};

std::string plain(const Sentence& sentence) {
  std::string out;
  std::size_t from = 0, value = 0;
  for (std::size_t at; (at = sentence.pattern.find("{}", from)) != std::string::npos;
       from = at + 2) {
    out += sentence.pattern.substr(from, at - from);
    const Value& each = sentence.values.at(value++);
    out += each.text.empty() ? std::to_string(each.integer) : each.text;
  }
  EXPECT_EQ(value, sentence.values.size()) << sentence.pattern;
  return out + sentence.pattern.substr(from);
}

// The gemm of the four steady steps takes 100 us, then 130 us: 30 us per step, per call.
TEST(CompareTest, ALongerKernelIsTheReason) {
  const Pair pair(training({100, 100, 100, 100, 100}), training({130, 130, 130, 130, 130}));
  EXPECT_EQ(pair.result.scope, CompareScope::kSteps);
  EXPECT_EQ(pair.result.verdict, CompareVerdict::kDiffers);
  EXPECT_EQ(pair.result.diff.effects.per_call_ns, 30'000);
  EXPECT_EQ(pair.result.diff.effects.sum_ns(), 30'000);
  EXPECT_NE(
      plain(pair.result.headline).find("+30000 per call of the same kernels (most of it gemm"),
      std::string::npos)
      << plain(pair.result.headline);
}

TEST(CompareTest, ATraceAgainstItselfHasNoDifference) {
  const Pair pair(training({100, 110, 90}), training({100, 110, 90}));
  EXPECT_EQ(pair.result.verdict, CompareVerdict::kEqual);
  EXPECT_EQ(pair.result.diff.effects.sum_ns(), 0);
  for (const CpuDiff& row : pair.result.cpu) EXPECT_EQ(row.a_ns, row.b_ns);
  for (const GapDiff& row : pair.result.gaps) EXPECT_EQ(row.a_ns, row.b_ns);
}

// Steady gemms 90 100 110 120 (median 105, MAD 10 of 5 5 15 15) against 8 us more: twice the root
// of two squared spreads of 14.8 us is 41 us.
TEST(CompareTest, WithinTheStepsOwnVariationNothingChanged) {
  const Pair pair(training({100, 90, 100, 110, 120}), training({100, 98, 108, 118, 128}));
  EXPECT_EQ(pair.result.verdict, CompareVerdict::kWithin);
  EXPECT_EQ(pair.result.a_steps.spread_ns, 14'826);
  EXPECT_EQ(pair.result.diff.effects.sum_ns(), 8'000);
}

// A step of 40 calls of 20 us becomes one of 4 calls of 200 us: the sum stays, and both changes are
// reported as one.
TEST(CompareTest, FewerButLongerCallsAreOneChange) {
  const auto steps = [](int calls, std::int64_t us) {
    ProgramSketch sketch;
    for (int i = 0; i < 5; ++i) {
      sketch.step();
      for (int k = 0; k < calls; ++k) sketch.kernel("neg", us);
      sketch.wait().end();
    }
    return sketch.trace();
  };
  const Pair pair(steps(40, 20), steps(4, 200));
  EXPECT_EQ(pair.result.diff.effects.calls_ns, -720'000);
  EXPECT_EQ(pair.result.diff.effects.per_call_ns, 720'000);
  const std::string headline = plain(pair.result.headline);
  EXPECT_NE(headline.find("fewer but longer calls of the same kernels (most of it neg: 4 of 200000 "
                          "instead of 40 of 20000)"),
            std::string::npos)
      << headline;
  EXPECT_EQ(headline.find("per call of the same"), std::string::npos) << headline;
}

// Two ranks of one job. A waits 500 us in its collective for B, whose GPU is idle meanwhile because
// the CPU is late.
TEST(CompareTest, RanksThatTakeEquallyLongForOtherReasonsDiffer) {
  const auto rank = [](int number, std::int64_t idle_us, std::int64_t collective_us) {
    testing::Sketch sketch;
    sketch.metadata("distributedInfo", R"({"backend": "nccl", "rank": )" + std::to_string(number) +
                                           R"(, "world_size": 2})");
    std::int64_t id = 0;
    for (int i = 0; i < 5; ++i) {
      const std::int64_t at = i * 1'000'000;
      sketch.annotation("ProfilerStep#" + std::to_string(i), at, 1'000'000);
      sketch.runtime("cudaLaunchKernel", at + idle_us * 1000, 5'000, {.correlation = ++id});
      sketch.kernel("gemm", at + idle_us * 1000 + 6'000, 300'000, {.correlation = id});
      sketch.runtime("cudaLaunchKernel", at + idle_us * 1000 + 10'000, 5'000,
                     {.correlation = ++id});
      sketch.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + idle_us * 1000 + 306'000,
                    collective_us * 1000, {.correlation = id});
    }
    return sketch.trace();
  };
  const Pair pair(rank(0, 5, 650), rank(1, 505, 150));
  const std::string headline = plain(pair.result.headline);
  EXPECT_EQ(headline.find("No difference"), std::string::npos) << headline;
  EXPECT_NE(headline.find("+500000 of idle GPU"), std::string::npos) << headline;
  EXPECT_NE(headline.find("-500000 of communication"), std::string::npos) << headline;
  ASSERT_FALSE(pair.result.remarks.empty());
  EXPECT_NE(plain(pair.result.remarks[0]).find("A spends 500000 more in communication alone"),
            std::string::npos)
      << plain(pair.result.remarks[0]);
}

// One of six steady steps is 600 us longer: the medians agree, the means differ by 100 us.
TEST(CompareTest, OneSlowStepIsNotASlowerProgram) {
  const Pair pair(training({100, 100, 100, 100, 100, 100, 100}),
                  training({100, 100, 100, 100, 700, 100, 100}));
  EXPECT_EQ(pair.result.verdict, CompareVerdict::kSlowSteps);
  EXPECT_EQ(pair.result.diff.effects.sum_ns(), 100'000);
  ASSERT_EQ(pair.result.b_steps.slow.size(), 1u);
  EXPECT_EQ(pair.result.b_steps.slow[0], 5);
}

TEST(CompareTest, TwoStepsASideAreTooFewUnlessTheyMeet) {
  const Pair apart(training({100, 100, 100}), training({100, 200, 200}));
  EXPECT_EQ(apart.result.verdict, CompareVerdict::kFewSteps);
  const Pair meeting(training({100, 100, 140}), training({100, 120, 160}));
  EXPECT_EQ(meeting.result.verdict, CompareVerdict::kWithin);
}

TEST(CompareTest, WithoutStepsOnOneSideOnlyCallsAreCompared) {
  ProgramSketch unmarked;
  for (int i = 0; i < 3; ++i) unmarked.launch({.us = 50}).wait();
  const Pair pair(training({100, 100, 100}), unmarked.trace());
  EXPECT_EQ(pair.result.scope, CompareScope::kCalls);
  EXPECT_EQ(pair.result.verdict, CompareVerdict::kNotCompared);
  EXPECT_NE(plain(pair.result.headline).find("B marks no steps"), std::string::npos);
}

TEST(CompareTest, FoundStepsWithOtherNumbersOfOptimizerStepsAreNotCompared) {
  Pair pair(updates(8, 1, false), updates(8, 4, true));
  ASSERT_TRUE(pair.a_facts.steps.found);
  EXPECT_EQ(pair.result.scope, CompareScope::kCalls);
  EXPECT_EQ(pair.result.verdict, CompareVerdict::kNotCompared);
  EXPECT_NE(plain(pair.result.headline)
                .find("A marks no steps, and what was found as a step in it is not the same as in "
                      "B: in A one Optimizer.step#Adam.step, in B what prof.step() marks"),
            std::string::npos)
      << plain(pair.result.headline);
  pair.b_facts.steps.found =
      found_by(analysis::IterationMark::kRangeEnd, "Optimizer.step#Adam.step", "4");
  const Comparison both_found = compare(pair.a_facts, pair.b_facts);
  EXPECT_EQ(both_found.verdict, CompareVerdict::kNotCompared);
  EXPECT_NE(plain(both_found.headline)
                .find("The traces mark no steps, and what was found as a step is not the same in "
                      "both: in A one Optimizer.step#Adam.step, in B 4 x Optimizer.step#Adam.step"),
            std::string::npos)
      << plain(both_found.headline);
}

TEST(CompareTest, StepsFoundInOtherWaysAreComparedIfNeitherHoldsTwiceAsManyOptimizerSteps) {
  const Pair pair(updates(8, 1, false), updates(8, 1, true));
  EXPECT_EQ(pair.result.units, StepUnits::kAlike);
  EXPECT_EQ(pair.result.scope, CompareScope::kSteps);
  ASSERT_FALSE(pair.result.remarks.empty());
  EXPECT_EQ(
      plain(pair.result.remarks[0]),
      "What counts as a step is not the same in both: in A one Optimizer.step#Adam.step, in B "
      "what prof.step() marks. They are compared because neither holds twice as much: A's has "
      "1 optimizer step, B's 1.");
  Pair fewer(updates(4, 5, true), updates(4, 3, true));
  for (const auto& [facts, steps] : {std::pair(&fewer.a_facts, "5"), {&fewer.b_facts, "3"}})
    facts->steps.found =
        found_by(analysis::IterationMark::kRangeEnd, "Optimizer.step#Adam.step", steps);
  EXPECT_EQ(compare(fewer.a_facts, fewer.b_facts).units, StepUnits::kAlike);
}

// One operator more makes another text of a round; twice as many may be two rounds.
TEST(CompareTest, RoundsOfFoundStepsAreComparedIfTheyHoldAboutAsMuch) {
  const auto rounds = [](int kernels) {
    ProgramSketch sketch;
    for (int i = 0; i < 5; ++i) {
      sketch.step();
      for (int k = 0; k < kernels; ++k) sketch.kernel("neg", 20);
      sketch.wait().end();
    }
    return sketch.trace();
  };
  const auto compared = [&](int more_in_b, const std::string& mark) {
    Pair pair(rounds(10), rounds(10 + more_in_b));
    pair.a_facts.steps.found =
        found_by(analysis::IterationMark::kRangeStart, "round of 10 operators (aten::neg)");
    pair.b_facts.steps.found = found_by(analysis::IterationMark::kRangeStart, mark);
    const Comparison c = compare(pair.a_facts, pair.b_facts);
    return std::pair(c.units, c.verdict);
  };
  EXPECT_EQ(compared(1, "round of 11 operators (aten::neg)"),
            std::pair(StepUnits::kAlike, CompareVerdict::kDiffers));
  EXPECT_EQ(compared(10, "round of 20 operators (aten::neg)"),
            std::pair(StepUnits::kOther, CompareVerdict::kNotCompared));
  EXPECT_EQ(compared(10, "round of 10 operators (aten::neg)"),
            std::pair(StepUnits::kSame, CompareVerdict::kDiffers));
}

TEST(CompareTest, AFileThatWasCutHasNoStepsToCompare) {
  ProgramSketch cut;
  for (int i = 0; i < 4; ++i) cut.step().launch({.us = 50}).wait().end();
  cut.sketch().builder().stats().count(ImportIssue::kTruncatedFile);
  const Pair pair(training({100, 100, 100, 100}), cut.trace());
  EXPECT_EQ(pair.result.scope, CompareScope::kCalls);
  EXPECT_EQ(pair.result.verdict, CompareVerdict::kNotCompared);
  EXPECT_NE(plain(pair.result.headline).find("Events of B are missing"), std::string::npos);
}

TEST(CompareTest, StepsThatAreLeftOutAreTold) {
  ProgramSketch trailing;
  for (int i = 0; i < 4; ++i) trailing.step().launch({.us = 50}).wait().end();
  trailing.step().pass(20).end();
  const Pair pair(training({100, 100, 100, 100}), trailing.trace());
  ASSERT_FALSE(pair.result.remarks.empty());
  EXPECT_NE(plain(pair.result.remarks.back()).find("In B: Step 5 is left out"), std::string::npos);
}

TEST(CompareTest, WithoutGpuWorkOnOneSideTheCpuIsCompared) {
  ProgramSketch cpu_only;
  for (int i = 0; i < 4; ++i) cpu_only.step().cpu_op("aten::mm", 50).end();
  const Pair pair(training({100, 100, 100, 100}), cpu_only.trace());
  EXPECT_EQ(pair.result.scope, CompareScope::kCpu);
  ASSERT_FALSE(pair.result.remarks.empty());
  EXPECT_NE(plain(pair.result.remarks[0]).find("B holds no GPU work"), std::string::npos);
  EXPECT_TRUE(pair.result.diff.kernels.empty());
}

TEST(CompareTest, EmptyTracesSayThatThereIsNothing) {
  const Pair pair(testing::Sketch().trace(), testing::Sketch().trace());
  EXPECT_EQ(pair.result.verdict, CompareVerdict::kNotCompared);
  EXPECT_NE(plain(pair.result.headline).find("nothing to compare"), std::string::npos);
}

// The first kernel runs at 6 us, the next, launched at 10 us, at 500 ms.
TEST(CompareTest, AGapAtTheEdgeOfARecordingIsSaidToBeNone) {
  testing::Sketch edge, whole;
  for (int i = 0; i < 10; ++i) {
    for (testing::Sketch* sketch : {&edge, &whole})
      sketch->runtime("cudaLaunchKernel", i * 10'000, 4'000, {.correlation = i + 1});
    edge.kernel("gemm", i == 0 ? 6'000 : 500'000'000 + i * 100'000, 100'000,
                {.correlation = i + 1});
    whole.kernel("gemm", 6'000 + i * 100'000, 100'000, {.correlation = i + 1});
  }
  const Pair pair(whole.trace(), edge.trace());
  EXPECT_EQ(pair.result.scope, CompareScope::kRecordings);
  ASSERT_FALSE(pair.result.remarks.empty());
  EXPECT_NE(plain(pair.result.remarks.back()).find("of B's idle time is one gap"),
            std::string::npos);
}

TEST(CompareTest, OtherProgramsAreSaidToBeOther) {
  ProgramSketch other;
  for (int i = 0; i < 4; ++i)
    other.step().launch({.name = "sort", .us = 70, .op = "aten::sort"}).wait().end();
  const Pair pair(training({100, 100, 100, 100}), other.trace());
  ASSERT_FALSE(pair.result.remarks.empty());
  EXPECT_NE(plain(pair.result.remarks[0]).find("different programs"), std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain
