#include "lanescope/explain/predicted_gains.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lanescope/explain/do_first.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/testing/program_sketch.h"
#include "lanescope/testing/real_traces.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

Finding cost(const char* rule, std::int64_t at_stake_ns, std::int64_t step_ns) {
  Finding finding;
  finding.rule = rule;
  finding.at_stake_ns = at_stake_ns;
  finding.at_stake_ratio = static_cast<double>(at_stake_ns) / static_cast<double>(step_ns);
  finding.verdict = say("a verdict");
  finding.try_next = {"a fix"};
  return finding;
}

// Kernels of 500 and 250 us per step, launched long before they start.
Trace gpu_bound() {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) { p.kernel("gemm", 500).kernel("relu", 250); });
  return program.trace();
}

TEST(PredictedGains, OnAGpuBoundStepFewerKernelsGainAndLessCpuTimeDoesNot) {
  const Trace trace = gpu_bound();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  Explanation explanation;
  explanation.findings = {cost("python-hole", 300'000, 750'000),
                          cost("slow-gemm", 150'000, 750'000)};
  predict_gains(*facts, explanation);
  ASSERT_TRUE(explanation.gains);
  // The kernels take 750 us, with or without a profiler.
  EXPECT_EQ(explanation.gains->base().recorded_ns, 750'000);
  EXPECT_EQ(explanation.gains->base().step_ns, 750'000);
  // 8 % of the GPU's time: its clocks.
  EXPECT_EQ(explanation.gains->base().error_ns, 60'000);
  EXPECT_EQ(explanation.gains->base().cpu_error_ns, 0);
  // All kernels take 600 of 750 us. What gains most comes first, though less is at stake.
  EXPECT_EQ(explanation.findings[0].rule, "slow-gemm");
  EXPECT_EQ(explanation.findings[0].gain.state, Gain::State::kPredicted);
  EXPECT_NEAR(static_cast<double>(explanation.findings[0].gain.gain_ns), 150'000, 100);
  EXPECT_EQ(explanation.findings[1].gain.state, Gain::State::kPredicted);
  EXPECT_EQ(explanation.findings[1].gain.gain_ns, 0);
  // What gains nothing leaves the list.
  const auto first = do_first(*facts, explanation);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].finding, 0u);
  EXPECT_TRUE(first[0].is_predicted);
  EXPECT_EQ(first[0].at_most_ns, 150'000);
  EXPECT_FALSE(gain_together(explanation, first));
}

// 2 ms of a function without events, and 100 launches in operators, whose recording costs as much as their work. Without the
// profiler the function takes 2 ms still: its part of the step is larger than in the recording.
TEST(PredictedGains, AFunctionThatRecordingDoesNotSlowIsSparedWhole) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    const std::int64_t start_us = p.cpu_us();
    p.pass(2'000);
    p.sketch().slice("python_function", "json/__init__.py(183): dumps", ProgramSketch::at(start_us),
                     2'000'000);
    for (int i = 0; i < 100; ++i) p.launch({.us = 1, .op = "aten::mul"});
    p.sketch().slice("python_function", "train.py(7): step", ProgramSketch::at(start_us),
                     (p.cpu_us() - start_us) * 1'000);
    p.wait();
  });
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  const auto explanation = run_rules_and_gains(*facts);
  ASSERT_TRUE(explanation);
  const auto found = std::find_if(explanation->findings.begin(), explanation->findings.end(),
                                  [](const Finding& each) { return each.rule == "library-call"; });
  ASSERT_NE(found, explanation->findings.end());
  const StepBase& base = explanation->gains->base();
  EXPECT_LT(base.step_ns * 10, base.recorded_ns * 9);  // recording costs a tenth or more
  EXPECT_EQ(found->gain.state, Gain::State::kPredicted);
  EXPECT_NEAR(static_cast<double>(found->gain.gain_ns), 2'000'000, 40'000);
}

TEST(PredictedGains, AStepIsNearlyAllGpuWorkFromNineteenTwentiethsOn) {
  EXPECT_FALSE(is_nearly_all_gpu_work(532, {.step_ns = 583}));   // 91 %
  EXPECT_TRUE(is_nearly_all_gpu_work(1070, {.step_ns = 1110}));  // 96 %
}

TEST(PredictedGains, GainsOfTwoFixesDoNotAddUp) {
  const Trace trace = gpu_bound();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  Explanation explanation;
  explanation.findings = {cost("slow-gemm", 300'000, 750'000),
                          cost("unfused-chain", 250'000, 750'000)};
  explanation.findings[1].try_next = {"another fix"};
  predict_gains(*facts, explanation);
  const auto first = do_first(*facts, explanation);
  ASSERT_EQ(first.size(), 2u);
  const auto together = gain_together(explanation, first);
  ASSERT_TRUE(together);
  EXPECT_EQ(together->numbers, (std::vector<std::size_t>{1, 2}));
  // 450 of 750 us are left, and of these 500 of 750: 300 us.
  EXPECT_NEAR(static_cast<double>(together->gain_ns), 450'000, 300);
}

TEST(PredictedGains, NoneIsLongerThanTheStepWithoutTheProfiler) {
  // Launches of 10 us for kernels of 2 us: the CPU decides, and a part of its time is recording.
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    for (int i = 0; i < 50; ++i) p.launch({.us = 2});
  });
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  Explanation explanation;
  Finding whole = cost("cpu-operators", facts->per_step(facts->steady_wall_ns()),
                       facts->per_step(facts->steady_wall_ns()));
  explanation.findings = {whole, cost("slow-launches", 2'000'000'000, 1)};
  predict_gains(*facts, explanation);
  ASSERT_TRUE(explanation.gains);
  const StepBase& base = explanation.gains->base();
  EXPECT_LT(base.step_ns, base.recorded_ns);
  EXPECT_GT(base.error_ns, 0);
  for (const Suggestion& each : do_first(*facts, explanation)) {
    EXPECT_LE(each.gain_ns, base.step_ns);
    EXPECT_LE(each.at_most_ns, base.step_ns);
  }
}

// A fix of the CPU's work gains a part of a step whose length without the profiler has an error.
TEST(PredictedGains, OfTheCpusWorkHaveTheErrorOfTheStep) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    for (int i = 0; i < 50; ++i) p.launch({.us = 2});
  });
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  const std::int64_t wall_ns = facts->per_step(facts->steady_wall_ns());
  Explanation explanation;
  explanation.findings = {cost("looped-calls", wall_ns / 2, wall_ns)};
  predict_gains(*facts, explanation);
  ASSERT_TRUE(explanation.gains);
  const StepBase& base = explanation.gains->base();
  for (const Suggestion& each : do_first(*facts, explanation)) {
    if (!each.is_predicted) continue;
    EXPECT_LE(each.error_ns, base.error_ns);
    EXPECT_LE(each.error_ns, each.gain_ns);  // else it is shown as a bound
  }
}

// Calls that no longer run spare GPU work and what the GPU waited for them: that part of their gain has the error.
TEST(PredictedGains, WaitingThatACallCausesHasTheErrorOfTheStep) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    for (int i = 0; i < 50; ++i) p.launch({.us = 2});
  });
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  Explanation explanation;
  predict_gains(*facts, explanation);
  ASSERT_TRUE(explanation.gains);
  const StepBase& base = explanation.gains->base();
  ASSERT_GE(base.cpu_error_ns * 5, base.step_ns);
  explanation.findings = {cost("recompute", base.step_ns / 2, base.step_ns)};
  Finding& calls = explanation.findings[0];
  calls.gain = {Gain::State::kPredicted, base.step_ns / 2, base.step_ns / 2};
  EXPECT_EQ(do_first(*facts, explanation).at(0).error_ns, 0);
  calls.waiting_ns = calls.at_stake_ns;
  const Suggestion suggestion = do_first(*facts, explanation).at(0);
  EXPECT_GT(suggestion.error_ns * 5, suggestion.gain_ns);
}

// Steady steps of 100, 300, 300, 100, 100 us: their median is 100, and what they take is 180 each.
TEST(PredictedGains, OfUnevenStepsTheMeanIsTheStep) {
  ProgramSketch program;
  for (const std::int64_t kernel_us : {100, 100, 300, 300, 100, 100})
    program.step().kernel("gemm", kernel_us).pass(1).end();
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  Explanation explanation;
  explanation.findings = {cost("slow-gemm", 150'000, 180'000)};
  predict_gains(*facts, explanation);
  ASSERT_TRUE(explanation.gains);
  EXPECT_EQ(explanation.gains->base().recorded_ns, 180'000);
  EXPECT_EQ(explanation.gains->at_most_ns(explanation.findings[0]), 150'000);
  EXPECT_EQ(explanation.findings[0].gain.state, Gain::State::kNone);
}

// Of the longer steps only what they add to the mean is to be had: 180 us minus the usual 100.
TEST(PredictedGains, OfUnevenStepsTheUsualStepStays) {
  ProgramSketch program;
  for (const std::int64_t kernel_us : {100, 100, 300, 300, 100, 100})
    program.step().kernel("gemm", kernel_us).pass(1).end();
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  Explanation explanation;
  explanation.findings = {cost("uneven-steps", 500'000, 180'000)};
  predict_gains(*facts, explanation);
  ASSERT_TRUE(explanation.gains);
  EXPECT_EQ(explanation.gains->at_most_ns(explanation.findings[0]), 80'000);
}

// A step launches a kernel of 300 us and casts in 200 us of the CPU and 20 us of the GPU. Without the cast the CPU needs a
// few us, so the GPU's 300 us are left of 320.
TEST(PredictedGains, SparedCallsGoWithWhatTheyLaunch) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.begin_op("aten::to").pass(200).kernel("cast", 20).end();
    p.kernel("gemm", 300);
  });
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  Explanation explanation;
  explanation.findings = {cost("repeated-casts", 200'000, 320'000)};
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.name(SliceId{i}) == "aten::to")
      explanation.findings[0].spared_calls.push_back(SliceId{i});
  predict_gains(*facts, explanation);
  ASSERT_TRUE(explanation.gains);
  EXPECT_EQ(explanation.findings[0].gain.state, Gain::State::kPredicted);
  EXPECT_NEAR(static_cast<double>(explanation.findings[0].gain.gain_ns), 20'000, 1'500);
}

// A step of 300 us on the CPU and then a copy of 200 us to the GPU. Where the GPU computes what the CPU did, the copy is gone, too.
TEST(PredictedGains, WorkThatGoesWithAFixOfTheCpuDoesNotLimitIt) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.begin_op("aten::index").pass(300).end();
    p.begin_op("aten::to").copy(200, 1'000'000, "Memcpy HtoD (Pageable -> Device)").end().wait();
  });
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  Explanation explanation;
  explanation.findings = {cost("cpu-operators", 490'000, 500'000)};
  predict_gains(*facts, explanation);
  ASSERT_TRUE(explanation.gains);
  Finding finding = explanation.findings[0];
  EXPECT_LE(explanation.gains->at_most_ns(finding), 330'000);
  finding.gone_work_ns = 200'000;
  EXPECT_GE(explanation.gains->at_most_ns(finding), 470'000);
}

// All-reduces of 100 us in a step of 600: without them the step takes 500, but kernels next to them would be slower.
TEST(PredictedGains, AReplayThatLeavesOutTheCostOfTheFixIsABound) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.kernel("gemm", 500);
    p.launch({.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", .us = 100});
  });
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  Explanation explanation;
  explanation.findings = {cost("serial-communication", 300'000, 600'000),
                          cost("slow-gemm", 300'000, 600'000)};
  predict_gains(*facts, explanation);
  ASSERT_TRUE(explanation.gains);
  for (const Finding& finding : explanation.findings) {
    if (finding.rule == "slow-gemm") {
      EXPECT_EQ(finding.gain.state, Gain::State::kPredicted);
      continue;
    }
    EXPECT_EQ(finding.gain.state, Gain::State::kNone);
    EXPECT_NEAR(static_cast<double>(explanation.gains->at_most_ns(finding)), 100'000, 2'000);
  }
  // With the larger gain first, although the other was before it.
  EXPECT_EQ(explanation.findings[0].rule, "slow-gemm");
}

// Eight kernels of 50 us are hidden by 100 us of Python each; a last one of 400 us is waited for. Kernels twice as fast save 400 of
// 800 us of the GPU's time, of which 200 are at stake: those of the last kernel. All of them are gained.
TEST(PredictedGains, FasterKernelsOnThePathGainAllThatIsAtStake) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    for (int i = 0; i < 8; ++i) p.pass(100).launch({.us = 50});
    p.launch({.us = 400}).wait();
  });
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  const auto gain_of = [&](std::int64_t gpu_saved_ns) {
    Explanation explanation;
    explanation.findings = {cost("slow-gemm", 200'000, 1'300'000)};
    explanation.findings[0].gpu_saved_ns = gpu_saved_ns;
    predict_gains(*facts, explanation);
    EXPECT_EQ(explanation.findings[0].gain.state, Gain::State::kPredicted);
    return static_cast<double>(explanation.findings[0].gain.gain_ns);
  };
  EXPECT_NEAR(gain_of(400'000), 200'000, 1'000);
  // All kernels a quarter shorter: 100 us of the last one, and a part of the one before.
  EXPECT_LT(gain_of(0), 130'000);
}

// 100 launches in operators, each for 50 us of the GPU. Recorded the CPU takes longer; without the profiler the GPU does. Three
// quarters of the GPU's time are more than the CPU leaves; how much it leaves depends on what recording costs.
TEST(PredictedGains, AFixOfTheGpusWorkGainsWhatTheCpuLeaves) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    for (int i = 0; i < 100; ++i) p.pass(45).launch({.us = 50, .op = "aten::mul"});
    p.wait();
  });
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  Explanation explanation;
  explanation.findings = {cost("slow-gemm", 3'750'000, 6'000'000)};
  predict_gains(*facts, explanation);
  const Gain& gain = explanation.findings[0].gain;
  EXPECT_EQ(gain.state, Gain::State::kUnsure);
  EXPECT_GT(gain.spread_ns, 0);
  EXPECT_LT(gain.gain_ns, gain.most_ns);
  const auto first = do_first(*facts, explanation);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_FALSE(first[0].is_predicted);
  EXPECT_EQ(first[0].gain_ns, gain.gain_ns);
  EXPECT_EQ(first[0].error_ns, gain.spread_ns);
}

// A function inside code without events: their times are not added.
TEST(PredictedGains, TwoPartsOfTheCpusTimeMayBeTheSameTime) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) { p.pass(900).launch({.us = 20}).wait(); });
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  Explanation explanation;
  explanation.findings = {cost("python-hole", 600'000, 940'000),
                          cost("own-python", 400'000, 940'000)};
  explanation.findings[1].try_next = {"another fix"};
  predict_gains(*facts, explanation);
  ASSERT_TRUE(explanation.gains);
  for (const Finding& finding : explanation.findings)
    EXPECT_EQ(finding.gain.state, Gain::State::kPredicted);
  const auto first = do_first(*facts, explanation);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_FALSE(gain_together(explanation, first));
}

TEST(PredictedGains, ATraceWithoutGpuWorkHasNone) {
  ProgramSketch program;
  program.steps(3, [](ProgramSketch& p) { p.cpu_op("aten::mm", 100); });
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  Explanation explanation;
  predict_gains(*facts, explanation);
  EXPECT_FALSE(explanation.gains);
}

// Times that somebody made up, or in another unit: "0.04 us +- 0.00 us" would be no prediction.
TEST(PredictedGains, StepsOfLessThanAMicrosecondHaveNone) {
  for (const std::int64_t unit_ns : {1, 100}) {
    testing::Sketch sketch;
    for (std::int64_t i = 0; i < 5; ++i) {
      const std::int64_t begin = 1000 + i * 40 * unit_ns;
      sketch.annotation("ProfilerStep#" + std::to_string(i), begin, 40 * unit_ns);
      sketch.op("aten::mm", begin + unit_ns, 20 * unit_ns);
      sketch.runtime("cudaLaunchKernel", begin + 2 * unit_ns, 5 * unit_ns, {.correlation = i + 1});
      sketch.kernel("gemm", begin + 10 * unit_ns, 25 * unit_ns, {.correlation = i + 1});
    }
    const Trace trace = sketch.trace();
    const auto facts = gather_facts(trace);
    ASSERT_TRUE(facts);
    Explanation explanation;
    predict_gains(*facts, explanation);
    EXPECT_EQ(explanation.gains != nullptr, unit_ns == 100);
  }
}

// How fast pinned copies are here, only pinned copies of the trace can say.
TEST(PredictedGains, PinnedMemoryNeedsAPinnedCopy) {
  for (const bool has_pinned : {false, true}) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.copy(500, 1 << 20, "Memcpy HtoD (Pageable -> Device)").kernel("gemm", 200);
      if (has_pinned) p.copy(50, 1 << 20, "Memcpy HtoD (Pinned -> Device)");
    });
    const Trace trace = program.trace();
    const auto facts = gather_facts(trace);
    ASSERT_TRUE(facts);
    Explanation explanation;
    explanation.findings = {cost("pageable-copy", 500'000, 700'000)};
    predict_gains(*facts, explanation);
    ASSERT_TRUE(explanation.gains);
    EXPECT_EQ(explanation.findings[0].gain.state,
              has_pinned ? Gain::State::kPredicted : Gain::State::kNone);
  }
}

// Ten times a step 58 us of recorded CPU time, half of it the profiler's, and a kernel. One of 35
// us is longer than what is left, one of 10 us is not.
TEST(PredictedGains, SaysWhenOnlyRecordingMakesAStepCpuBound) {
  for (const std::int64_t kernel_us : {35, 10}) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < 10; ++i) {
        for (int k = 0; k < 12; ++k) p.cpu_op("aten::view", 4);
        p.launch({.us = kernel_us});
      }
    });
    const Trace trace = program.trace();
    const auto facts = gather_facts(trace);
    ASSERT_TRUE(facts);
    auto explanation = run_rules(*facts);
    ASSERT_TRUE(explanation);
    ASSERT_TRUE(explanation->headline.pattern.starts_with("CPU-bound: "));
    predict_gains(*facts, *explanation);
    ASSERT_TRUE(explanation->gains);
    if (kernel_us == 10) {
      EXPECT_TRUE(explanation->headline.pattern.starts_with("CPU-bound: "));
      continue;
    }
    EXPECT_TRUE(explanation->headline.pattern.starts_with("GPU-bound without the profiler"));
    EXPECT_EQ(explanation->headline.values.at(2).integer, 10 * 35'000);
    EXPECT_EQ(explanation->findings.at(0).verdict.pattern, explanation->headline.pattern);
  }
}

// 40 launches in 480 operators, then 1.2 ms without an event, in which the GPU waits. With a faster CPU the GPU would have work left when that
// code begins: a replay hides most of it. Near miss: an event in the middle leaves two pieces of 0.6 ms.
TEST(PredictedGains, WaitingForCodeOfAMillisecondStaysInTheStep) {
  const auto base_of = [](bool is_one_piece) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < 40; ++i) {
        for (int k = 0; k < 12; ++k) p.cpu_op("aten::view", 4);
        p.launch({.us = 50});
      }
      p.pass(600);
      if (!is_one_piece) p.cpu_op("aten::view", 4);
      p.pass(600);
    });
    const Trace trace = program.trace();
    const auto facts = gather_facts(trace);
    EXPECT_TRUE(facts);
    const auto model = facts ? GainModel::of(*facts) : nullptr;
    EXPECT_TRUE(model);
    if (!model) return StepBase{};
    EXPECT_EQ(model->busy_ns(), 2'000'000);
    EXPECT_GE(model->mean_step_ns(), model->base().step_ns);
    return model->base();
  };
  const StepBase whole = base_of(true), parts = base_of(false);
  EXPECT_GE(whole.step_ns, 3'100'000);  // the GPU's 2 ms, and 1.1 ms or more of the code
  EXPECT_LE(whole.step_ns, whole.recorded_ns);
  EXPECT_LT(parts.step_ns, 2'900'000);
}

// What the headline of the program's trace says when gains are predicted.
Sentence headline_with_gains(ProgramSketch& program) {
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  EXPECT_TRUE(facts);
  if (!facts) return {};
  auto explanation = run_rules(*facts);
  EXPECT_TRUE(explanation);
  if (!explanation) return {};
  predict_gains(*facts, *explanation);
  return explanation->headline;
}

// The longer the kernels, the less is the CPU the limit without the profiler: between both, the headline leaves it open.
TEST(PredictedGains, LeavesOpenWhatMayBeGpuBound) {
  std::vector<std::string> begins;
  for (std::int64_t kernel_us = 10; kernel_us <= 36; kernel_us += 2) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < 10; ++i) {
        for (int k = 0; k < 12; ++k) p.cpu_op("aten::view", 4);
        p.launch({.us = kernel_us});
      }
    });
    const std::string headline = headline_with_gains(program).pattern;
    const std::string begin = headline.substr(0, headline.find(':'));
    EXPECT_EQ(headline.find("it may be GPU-bound") != std::string::npos,
              begin == "CPU-bound with the profiler");
    if (begins.empty() || begins.back() != begin) begins.push_back(begin);
  }
  EXPECT_EQ(begins, (std::vector<std::string>{"CPU-bound", "CPU-bound with the profiler",
                                              "GPU-bound without the profiler"}));
}

// A step of no single limit: Python in one gap, what recording costs in the others. Without the latter it may be GPU-bound, but not where
// copies alone are a part of the GPU's time.
TEST(PredictedGains, LeavesOpenWhetherAStepOfNoSingleLimitIsGpuBound) {
  const auto headline = [](std::int64_t copy_us) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < 10; ++i) {
        for (int k = 0; k < 12; ++k) p.cpu_op("aten::view", 4);
        p.launch({.us = 77 - copy_us});
        if (copy_us > 0) p.launch(ProgramSketch::memcpy("Memcpy DtoD (Device -> Device)", copy_us));
      }
      p.pass(640);
    });
    return headline_with_gains(program).pattern;
  };
  EXPECT_EQ(headline(0).find("No single limit with the profiler:"), 0u);
  EXPECT_NE(headline(0).find("it may be GPU-bound"), std::string::npos);
  EXPECT_EQ(headline(20).find("it may be GPU-bound"), std::string::npos);
}

// The same work in iterations that no mark shows: what the step takes without the profiler comes before how iterations were found.
TEST(PredictedGains, SaysWhatMayLimitTheStepBeforeHowStepsWereFound) {
  int told = 0;
  for (std::int64_t kernel_us = 10; kernel_us <= 36; kernel_us += 2) {
    ProgramSketch program;
    for (int i = 0; i < 8; ++i) {
      for (int k = 0; k < 10; ++k) {
        for (int view = 0; view < 12; ++view) program.cpu_op("aten::view", 4);
        program.launch({.us = kernel_us});
      }
      program.begin("Optimizer.step#SGD.step").launch({.us = 2, .op = "aten::add_"}).end();
    }
    const Sentence sentence = headline_with_gains(program);
    const std::string& headline = sentence.pattern;
    const auto open = headline.find("it may be GPU-bound");
    if (open == std::string::npos) continue;
    ++told;
    EXPECT_LT(open, headline.find("The trace marks no steps"));
    EXPECT_NE(headline.find("The trace marks no steps"), std::string::npos);
    EXPECT_EQ(headline.rfind("found."), headline.size() - 6);
    // The last value is how many iterations were found, the ones before it the mark and the step without the profiler.
    EXPECT_EQ(sentence.values.back().kind, Value::Kind::kCount);
  }
  EXPECT_GT(told, 0);
}

// A step of no single limit as recorded, of which the CPU's part goes without the profiler; copies alone are no such work.
TEST(PredictedGains, NoSingleLimitIsCorrectedLikeTheTableBelowIt) {
  const auto headline = [](bool copies) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < 10; ++i) {
        for (int k = 0; k < 12; ++k) p.cpu_op("aten::view", 4);
        p.launch({.us = copies ? 36 : 46});
        if (copies) p.launch(ProgramSketch::memcpy("Memcpy DtoD (Device -> Device)", 20));
      }
    });
    const Trace trace = program.trace();
    const auto facts = gather_facts(trace);
    EXPECT_TRUE(facts);
    auto explanation = run_rules(*facts);
    EXPECT_TRUE(explanation);
    const std::string before = explanation->headline.pattern;
    predict_gains(*facts, *explanation);
    return before.substr(0, before.find(':')) + " / " +
           explanation->headline.pattern.substr(0, explanation->headline.pattern.find(':'));
  };
  EXPECT_EQ(headline(false).find("CPU-bound"), std::string::npos);
  EXPECT_NE(headline(false).find("/ GPU-bound without the profiler"), std::string::npos);
  EXPECT_EQ(headline(true).find("/ GPU-bound without the profiler"), std::string::npos);
}

// Whatever looks first, the findings and their gains are the same. Returns how many there are.
std::size_t expect_the_same_for_any_number_of_threads(const Trace& trace) {
  const auto facts = gather_facts(trace, {}, 1);
  EXPECT_TRUE(facts);
  const auto alone = run_rules_and_gains(*facts, {.only = {}, .off = {}, .threads = 1});
  EXPECT_TRUE(alone);
  for (const unsigned threads : {2u, 8u}) {
    const auto facts_again = gather_facts(trace, {}, threads);  // nothing is remembered
    EXPECT_TRUE(facts_again);
    const auto many =
        run_rules_and_gains(*facts_again, {.only = {}, .off = {}, .threads = threads});
    EXPECT_TRUE(many);
    EXPECT_EQ(many->headline.pattern, alone->headline.pattern);
    EXPECT_EQ(many->findings.size(), alone->findings.size());
    if (many->findings.size() != alone->findings.size()) return 0;
    for (std::size_t i = 0; i < alone->findings.size(); ++i) {
      EXPECT_EQ(many->findings[i].rule, alone->findings[i].rule);
      EXPECT_EQ(many->findings[i].at_stake_ns, alone->findings[i].at_stake_ns);
      EXPECT_EQ(many->findings[i].gain.gain_ns, alone->findings[i].gain.gain_ns);
    }
    EXPECT_EQ(many->runs.size(), alone->runs.size());
    if (many->runs.size() != alone->runs.size()) return 0;
    for (std::size_t i = 0; i < alone->runs.size(); ++i)
      EXPECT_EQ(many->runs[i].id, alone->runs[i].id);
  }
  return alone->findings.size();
}

TEST(PredictedGains, AnyNumberOfThreadsFindsTheSame) {
  ProgramSketch program;
  program.steps(6, [](ProgramSketch& p) {
    for (int i = 0; i < 30; ++i) p.kernel("relu", 2);
    p.kernel("gemm", 40);
  });
  EXPECT_GT(expect_the_same_for_any_number_of_threads(program.trace()), 0u);
}

// With stacks, shapes and memory: rules share what is around a slice, the frames and the graph.
TEST(PredictedGains, AnyNumberOfThreadsFindsTheSameInATraceWithStacks) {
  const auto trace = format::read_trace(
      (testing::shipped_traces() / "h200_stacks/train_everything.json.gz").string());
  ASSERT_TRUE(trace);
  EXPECT_GT(expect_the_same_for_any_number_of_threads(*trace), 0u);
}

// 60 launches per step, each of 20 us of the CPU for 2 us of the GPU: the GPU waits for the CPU, with or without the tiny
// copies among them. What is shown of the copies is not the idleness that stays without them.
TEST(PredictedGains, ATinyCopyDoesNotGainTheIdlenessAroundIt) {
  const auto shown_ns = [](std::int64_t kernel_us) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < 60; ++i) {
        if (i % 15 == 0) {
          p.begin_op("aten::to").copy(3, 2'048, "Memcpy HtoD (Pageable -> Device)");
          p.wait("aten::copy_").end().pass(40);
        }
        p.launch({.us = kernel_us}).pass(10);
      }
    });
    const Trace trace = program.trace();
    const auto facts = gather_facts(trace);
    const auto explanation = run_rules_and_gains(*facts);
    EXPECT_TRUE(explanation && explanation->gains);
    for (const Finding& finding : explanation->findings)
      if (finding.rule == "host-sync") return explanation->gains->shown_ns(finding);
    return std::int64_t{0};
  };
  // Four operators of some 10 us each.
  EXPECT_LE(shown_ns(2), 80'000);
  // With 40 us of the GPU's work for each launch, the waits cost the CPU its lead: 40 us of code and more after each.
  EXPECT_GE(shown_ns(40), 100'000);
}

}  // namespace
}  // namespace lanescope::explain
