// Steps at the end of a recording that it does not hold as a whole.
#include "lanescope/explain/left_out_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Sketch;

constexpr std::int64_t kMicrosecond = 1'000;

// Steps of so many launches each, 20 us apart, each with a kernel of 10 us; without those
// launched at `no_gpu_from_us` and later.
struct DrawnLeftOutSteps {
  std::vector<int> launches = {20, 20, 20, 20};
  std::int64_t no_gpu_from_us = 1'000'000;
  bool calls = true;
  std::int64_t step_us = 1'000;
};
Sketch draw(const DrawnLeftOutSteps& drawn) {
  Sketch sketch;
  std::int64_t id = 0;
  for (std::size_t step = 0; step < drawn.launches.size(); ++step) {
    const auto start = static_cast<std::int64_t>(step) * drawn.step_us;
    sketch.annotation("ProfilerStep#" + std::to_string(step), start * kMicrosecond,
                      drawn.step_us * kMicrosecond);
    for (int i = 0; i < drawn.launches[step]; ++i) {
      const std::int64_t at = start + 10 + i * 20;
      ++id;
      sketch.op("aten::mm", (at - 2) * kMicrosecond, 8 * kMicrosecond);
      if (drawn.calls)
        sketch.runtime("cudaLaunchKernel", at * kMicrosecond, 4 * kMicrosecond,
                       {.correlation = id});
      if (at < drawn.no_gpu_from_us)
        sketch.kernel("gemm", (at + 6) * kMicrosecond, 10 * kMicrosecond, {.correlation = id});
    }
  }
  return sketch;
}

Facts facts_of(const Trace& trace, std::optional<std::int64_t> step = {}) {
  auto facts = gather_facts(trace, {.step = step});
  EXPECT_TRUE(facts);
  return std::move(*facts);
}
Sentence headline_of(const Facts& facts) { return run_rules(facts, {})->headline; }

TEST(CutStepsTest, WholeStepsStay) {
  const Trace trace = draw({}).trace();
  const Facts facts = facts_of(trace);
  EXPECT_THAT(facts.selection.steady, ElementsAre(1, 2, 3));
  EXPECT_THAT(facts.selection.cut(), IsEmpty());
  EXPECT_TRUE(cut_steps_note(facts).pattern.empty());
}

// Steps of 300, 900, 300 and 900 us: the mean is of the second and third, 600 us. Two turns may be chance, three are said to be
// turns. Those of equal length have no note.
TEST(TurnsNoteTest, SaysThatStepsComeInTurns) {
  const auto drawn = [](std::int64_t long_us, std::int64_t steps = 4) {
    Sketch sketch;
    std::int64_t start = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::int64_t length = step % 2 == 0 ? 300 : long_us;
      sketch.annotation("ProfilerStep#" + std::to_string(step), start * kMicrosecond,
                        length * kMicrosecond);
      sketch.runtime("cudaLaunchKernel", (start + 10) * kMicrosecond, 4 * kMicrosecond,
                     {.correlation = step + 1});
      sketch.kernel("gemm", (start + 20) * kMicrosecond, 200 * kMicrosecond,
                    {.correlation = step + 1});
      start += length;
    }
    return sketch.trace();
  };
  const Trace uneven = drawn(900), even = drawn(300);
  const Facts facts = facts_of(uneven);
  EXPECT_THAT(facts.selection.steady, ElementsAre(1, 2));
  EXPECT_EQ(facts.per_step(facts.steady_wall_ns()), 600 * kMicrosecond);
  const Sentence note = turns_note(facts);
  EXPECT_EQ(note.values.at(0).integer, 2);
  EXPECT_EQ(note.values.at(1).integer, 300 * kMicrosecond);
  EXPECT_EQ(note.values.at(2).integer, 900 * kMicrosecond);
  EXPECT_THAT(headline_of(facts).pattern, HasSubstr("seem to alternate, every {} steps"));
  const Trace six = drawn(900, 6);
  EXPECT_THAT(headline_of(facts_of(six)).pattern, HasSubstr("steps alternate, every {} steps"));
  EXPECT_TRUE(turns_note(facts_of(even)).pattern.empty());
}

TEST(CutStepsTest, TheEmptyStepBehindTheLastOneIsLeftOut) {
  const Trace trace = draw({.launches = {20, 20, 20, 20, 0}}).trace();
  const Facts facts = facts_of(trace);
  EXPECT_THAT(facts.selection.steady, ElementsAre(1, 2, 3));
  EXPECT_THAT(facts.selection.cut(), ElementsAre(4));
  EXPECT_EQ(facts.wall.partition.compute_ns, 3 * 20 * 10 * kMicrosecond);
  const Sentence headline = headline_of(facts);
  EXPECT_THAT(headline.pattern, HasSubstr("Step {} is left out"));
  EXPECT_EQ(headline.values.back().integer, 4);
  EXPECT_THAT(facts_of(trace, 4).selection.steady, ElementsAre(4));  // whoever asks for it gets it
}

TEST(CutStepsTest, SeveralEmptyStepsBehindTheLastOneAreLeftOut) {
  const Trace trace = draw({.launches = {20, 20, 20, 20, 0, 0, 0}}).trace();
  EXPECT_THAT(facts_of(trace).selection.steady, ElementsAre(1, 2, 3));
  const Trace all_empty = draw({.launches = {20, 0, 0, 0}}).trace();
  EXPECT_THAT(facts_of(all_empty).selection.cut(), IsEmpty());
}

TEST(CutStepsTest, LessThanHalfOfTheFewestOfTheOthersIsCut) {
  const Trace nine = draw({.launches = {30, 20, 30, 30, 9}}).trace();
  EXPECT_THAT(facts_of(nine).selection.cut(), ElementsAre(4));
  const Trace ten = draw({.launches = {30, 20, 30, 30, 10}}).trace();
  EXPECT_THAT(facts_of(ten).selection.cut(), IsEmpty());
  // Far fewer in the middle is how the program is.
  const Trace middle = draw({.launches = {30, 30, 2, 30, 30}}).trace();
  EXPECT_THAT(facts_of(middle).selection.cut(), IsEmpty());
}

TEST(CutStepsTest, OfAFileThatWasCutLessThanUsualIsEnough) {
  Sketch sketch = draw({.launches = {20, 20, 20, 20, 15}});
  sketch.builder().stats().count(ImportIssue::kTruncatedFile);
  const Trace trace = sketch.trace();
  EXPECT_THAT(facts_of(trace).selection.cut(), ElementsAre(4));
}

TEST(CutStepsTest, OfAFileThatWasCutNothingIsSure) {
  DrawnLeftOutSteps drawn{.launches = {20, 20, 20, 20}};
  const Trace whole_trace = draw(drawn).trace();
  const auto whole = run_rules(facts_of(whole_trace), {});
  Sketch sketch = draw(drawn);
  sketch.builder().stats().count(ImportIssue::kTruncatedStream);
  const Trace cut_trace = sketch.trace();
  const auto cut = run_rules(facts_of(cut_trace), {});
  ASSERT_EQ(whole->findings.at(0).rule, "host-bound");
  for (const Finding& finding : cut->findings) {
    EXPECT_NE(finding.kind, FindingKind::kBound) << finding.rule;
    if (finding.kind == FindingKind::kCost) {
      EXPECT_EQ(finding.confidence, Confidence::kLow);
    }
  }
  EXPECT_THAT(cut->headline.pattern, HasSubstr("The end of the file is missing"));
}

TEST(CutStepsTest, StepsBehindTheEndOfTheGpusRecordingAreLeftOut) {
  // Step 2 lacks its last two of 20, steps 3 and 4 everything.
  const Trace trace = draw({.launches = {20, 20, 20, 20, 20}, .no_gpu_from_us = 2'370}).trace();
  const Facts facts = facts_of(trace);
  EXPECT_THAT(facts.selection.steady, ElementsAre(1));
  EXPECT_THAT(facts.selection.cut(), ElementsAre(2, 3, 4));
  EXPECT_FALSE(facts.selection.lacks_gpu_work);
  const Sentence headline = headline_of(facts);
  EXPECT_THAT(headline.pattern,
              HasSubstr("Steps {} to {} are left out: no GPU work is in the trace for the last {} "
                        "kernel launches, from {} on."));
  std::vector<std::int64_t> last;
  for (std::size_t i = headline.values.size() - 4; i < headline.values.size(); ++i)
    last.push_back(headline.values[i].integer);
  EXPECT_THAT(last, ElementsAre(2, 4, 42, 2'370 * kMicrosecond));
  // What follows the last work is not "nothing launched any more".
  EXPECT_EQ(facts.device().walls[3].idle_by(analysis::IdleCause::kAfterLastWork), 0);
  EXPECT_EQ(facts.device().walls[3].idle_by(analysis::IdleCause::kUnknown), 1'000 * kMicrosecond);
}

TEST(CutStepsTest, TheLastSynchronizeIsNotExplainedByWorkThatIsMissing) {
  Sketch whole = draw({});
  whole.runtime("cudaDeviceSynchronize", 4'000 * kMicrosecond, 500 * kMicrosecond);
  EXPECT_TRUE(find_by_rule(whole.trace(), "final-sync"));
  Sketch cut = draw({.no_gpu_from_us = 3'300});
  cut.runtime("cudaDeviceSynchronize", 4'000 * kMicrosecond, 500 * kMicrosecond);
  EXPECT_FALSE(find_by_rule(cut.trace(), "final-sync"));
}

TEST(CutStepsTest, OneOfTwentyKernelsMissingIsNotYetAStep) {
  // Of 120 launches in the last step 6 are without work: a twentieth, and a fiftieth of all.
  DrawnLeftOutSteps drawn{
      .launches = {90, 90, 120}, .no_gpu_from_us = 10'010 + 114 * 20, .step_us = 5'000};
  const Trace six = draw(drawn).trace();
  EXPECT_TRUE(facts_of(six).kernel_launches.gpu_stops_early());
  EXPECT_THAT(facts_of(six).selection.cut(), IsEmpty());
  drawn.no_gpu_from_us -= 20;
  const Trace trace = draw(drawn).trace();
  EXPECT_THAT(facts_of(trace).selection.cut(), ElementsAre(2));
}

TEST(CutStepsTest, NoStepIsWholeNoVerdict) {
  const Trace trace = draw({.no_gpu_from_us = 500}).trace();
  const Facts facts = facts_of(trace);
  EXPECT_TRUE(facts.selection.lacks_gpu_work);
  const auto explanation = run_rules(facts, {});
  EXPECT_THAT(explanation->headline.pattern, HasSubstr("does not show what bounds a step"));
  for (const Finding& finding : explanation->findings) {
    EXPECT_NE(finding.kind, FindingKind::kBound) << finding.rule;
    EXPECT_NE(finding.kind, FindingKind::kCost) << finding.rule;
  }
}

TEST(CutStepsTest, WithoutCallsTheWorkIsCountedAndOnTheCpuTheOperators) {
  const Trace work = draw({.launches = {20, 20, 20, 20, 0}, .calls = false}).trace();
  EXPECT_THAT(facts_of(work).selection.cut(), ElementsAre(4));
  const Trace cpu =
      draw({.launches = {20, 20, 20, 20, 3}, .no_gpu_from_us = 0, .calls = false}).trace();
  EXPECT_THAT(facts_of(cpu).selection.cut(), ElementsAre(4));
}

// 4 steps of 1 ms; the GPU works 10 ms, for one step after the other, and no calls are recorded.
TEST(CutStepsTest, AGpuFarBehindItsStepsWithoutCallsIsOneRecording) {
  Sketch sketch;
  for (int step = 0; step < 4; ++step) {
    sketch.annotation("ProfilerStep#" + std::to_string(step), step * 1'000 * kMicrosecond,
                      1'000 * kMicrosecond);
    sketch.op("aten::mm", (step * 1'000 + 10) * kMicrosecond, 900 * kMicrosecond);
    for (int i = 0; i < 10; ++i)
      sketch.kernel("gemm", (100 + (step * 10 + i) * 250) * kMicrosecond, 250 * kMicrosecond);
  }
  const Trace trace = sketch.trace();
  const Facts facts = facts_of(trace);
  EXPECT_FALSE(facts.steps.marked);
  EXPECT_TRUE(facts.steps.device_behind);
  EXPECT_EQ(facts.wall.partition.wall_ns, 10'000 * kMicrosecond);
  EXPECT_EQ(facts.wall.partition.compute_ns, 10'000 * kMicrosecond);
  EXPECT_FALSE(gather_facts(trace, {.step = 2}));
}

// Eight rounds of 1 ms in a range of the program, after one call of so many microseconds.
std::string headline_after(std::int64_t start_up_us) {
  Sketch sketch;
  sketch.op("aten::uniform_", 0, start_up_us * kMicrosecond);
  for (std::int64_t i = 0; i < 8; ++i) {
    const std::int64_t at = (start_up_us + 10 + i * 1'000) * kMicrosecond;
    sketch.annotation("forward", at, 990 * kMicrosecond);
    for (std::int64_t op = 0; op < 3; ++op)
      sketch.op("aten::mm", at + (10 + op * 320) * kMicrosecond, 310 * kMicrosecond);
  }
  const Trace trace = sketch.trace();
  return headline_of(facts_of(trace)).pattern;
}

TEST(StartUpNoteTest, StartUpLongerThanAllIterationsIsInTheHeadline) {
  EXPECT_THAT(headline_after(20'000), HasSubstr("are start-up and are left out"));
  EXPECT_THAT(headline_after(1'000), Not(HasSubstr("start-up")));
}

// Three tiles, each in a range of its own, then their sum; twice.
TEST(FoundIterationsTest, SaysHowManyRangesAStepHas) {
  const auto note = [](int tiles) {
    Sketch sketch;
    std::int64_t at_us = 0;
    const auto range = [&](const char* name) {
      sketch.annotation(name, at_us * kMicrosecond, 990 * kMicrosecond);
      for (std::int64_t op = 0; op < 3; ++op)
        sketch.op("aten::mm", (at_us + 10 + op * 320) * kMicrosecond, 310 * kMicrosecond);
      at_us += 1'000;
    };
    for (int step = 0; step < 2; ++step) {
      for (int tile = 0; tile < tiles; ++tile) range("predict");
      range("join");
    }
    const Trace trace = sketch.trace();
    return found_iterations_note(facts_of(trace)).pattern;
  };
  EXPECT_THAT(note(3), HasSubstr("a step begins with one {} of {}, {} found"));
  EXPECT_THAT(note(1), HasSubstr("each {} begins a step, {} found"));
}

// Four training steps of 903 us that end with Optimizer.step. So three iterations are found, and two are measured: the
// headline names the time before only if it is longer. The first step takes `more_us` more.
std::string headline_of_training(std::int64_t more_us) {
  Sketch sketch;
  std::int64_t at_us = 0;
  for (int i = 0; i < 4; ++i) {
    for (int op = 0; op < 3; ++op) {
      const std::int64_t op_us = 200 + (i == 0 && op == 0 ? more_us : 0);
      sketch.op("aten::mm", at_us * kMicrosecond, op_us * kMicrosecond);
      at_us += op_us + 1;
    }
    sketch.annotation("Optimizer.step#SGD.step", at_us * kMicrosecond, 300 * kMicrosecond);
    at_us += 300;
  }
  const Trace trace = sketch.trace();
  return headline_of(facts_of(trace)).pattern;
}

// Two training steps; the first takes so many microseconds, the second 1,300.
TEST(StartUpNoteTest, AFirstStepThatIsShorterIsNoStartUp) {
  const auto headline = [](std::int64_t first_us) {
    Sketch sketch;
    std::int64_t at_us = 0;
    for (const std::int64_t length_us : {first_us, std::int64_t{1'300}}) {
      for (int op = 0; op < 5; ++op)
        sketch.op("op_" + std::to_string(op), (at_us + op * (length_us - 300) / 5) * kMicrosecond,
                  150 * kMicrosecond);
      sketch.annotation("Optimizer.step#SGD.step", (at_us + length_us - 300) * kMicrosecond,
                        300 * kMicrosecond);
      at_us += length_us;
    }
    const Trace trace = sketch.trace();
    return headline_of(facts_of(trace)).pattern;
  };
  EXPECT_THAT(headline(1'100),
              HasSubstr("Only the second of two steps is counted; the first took"));
  EXPECT_THAT(headline(1'250), Not(HasSubstr("Only the second")));
  EXPECT_THAT(headline(1'400), HasSubstr("the first, {}, may be start-up"));
}

// From the recording's begin to the first of the two that are measured: 903 + 10 + 903 us, and they take 1,806.
TEST(StartUpNoteTest, EqualIterationsAtTheBeginAreNoStartUp) {
  EXPECT_THAT(
      headline_of_training(10),
      AllOf(HasSubstr("The first {}, up to step {}, are left out"), Not(HasSubstr("start-up"))));
  EXPECT_THAT(headline_of_training(0), Not(HasSubstr("are left out")));
  // Half as long again, and a bit.
  EXPECT_THAT(headline_of_training(440), Not(HasSubstr("start-up")));
  EXPECT_THAT(headline_of_training(460), HasSubstr("are start-up and are left out"));
}

// Two outer rounds, each of three operators (kernels of 50 us) and then ten inner rounds of three kernels of 20 us and a wait, the
// second outer round one less. With two operators, or with all three in each inner round, they tell no longer loop.
std::string outer_loop_of(const std::vector<std::string>& outer, bool in_each_round,
                          std::int64_t outer_us = 50, int rounds = 10, int less = 1) {
  testing::ProgramSketch program;
  for (int round = 0; round < 2; ++round)
    for (int inner = 0; inner < rounds - round * less; ++inner) {
      if (inner == 0 || in_each_round)
        for (const std::string& op : outer) program.launch({.us = outer_us, .op = op});
      for (const char* op : {"aten::eq", "aten::index", "aten::mean"})
        program.launch({.us = 20, .op = op});
      program.wait("aten::item").pass(20);
    }
  const Trace trace = program.trace();
  const Sentence note = outer_loop_note(facts_of(trace));
  return note.pattern.empty()
             ? ""
             : note.values.at(0).text + " " + std::to_string(note.values.at(1).integer) + " " +
                   std::to_string(note.values.at(2).integer);
}

TEST(OuterLoopNoteTest, SeesRoundsInsideALongerLoop) {
  const std::vector<std::string> three = {"aten::cdist", "aten::argmin", "aten::norm"};
  EXPECT_THAT(outer_loop_of(three, false), ::testing::EndsWith(" 2 10"));
  EXPECT_EQ(outer_loop_of({"aten::cdist", "aten::argmin"}, false), "");
  EXPECT_EQ(outer_loop_of(three, true), "");
  // 3 x 5 us of about 1 ms: what a program logs in every tenth step.
  EXPECT_EQ(outer_loop_of(three, false, 5), "");
  // Nobody logs so rarely: k-means has its distances once in 512 groups.
  EXPECT_EQ(outer_loop_of(three, false, 5, 255), "");
  EXPECT_THAT(outer_loop_of(three, false, 5, 256), ::testing::EndsWith(" 2 256"));
  // Where both outer rounds are whole, they are the iterations.
  EXPECT_EQ(outer_loop_of(three, false, 50, 10, 0), "");
}

// Four moves of 14 operators and then six steps of an optimizer, so many times.
testing::ProgramSketch game(int rounds) {
  testing::ProgramSketch program;
  const auto launch = [&](const std::string& first, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string op = first + std::to_string(i);
      program.launch({.us = 3, .op = op});
    }
  };
  for (int round = 0; round < rounds; ++round) {
    for (int move = 0; move < 4; ++move) {
      launch("model_", 4);
      launch("world_", 10);
    }
    for (int step = 0; step < 6; ++step) {
      launch("model_", 6);
      launch("loss_", 4);
      program.begin("Optimizer.step#Adam.step");
      launch("adam_", 1);
      program.end();
    }
  }
  return program;
}

TEST(NestNoteTest, TheHeadlineTellsTheLoopsOfAnIteration) {
  const Trace trace = game(2).trace();
  const Facts facts = facts_of(trace);
  const Sentence note = found_iterations_note(facts);
  EXPECT_EQ(note.pattern,
            "The trace marks no steps: here {} x {} make a step, {} found. Their loop takes {} of "
            "each step; {} rounds of {} take {}.");
  ASSERT_EQ(note.values.size(), 7u);
  EXPECT_EQ(note.values[0].text, "6");
  EXPECT_EQ(note.values[4].integer, 4);
  EXPECT_EQ(note.values[5].text, "14 operators (model_0, model_1, ...)");
  EXPECT_EQ(other_phase_note(facts).pattern, "");
}

TEST(NestNoteTest, AnotherPhaseBeforeTheIterationsIsNoStartUp) {
  const Trace trace = game(1).trace();
  const Facts facts = facts_of(trace);
  EXPECT_EQ(
      other_phase_note(facts).pattern,
      "Before them, {} of other work is recorded once: {} rounds of {}. The steps may be rounds "
      "inside a longer loop.");
  const auto before = time_before_iterations(facts);
  ASSERT_TRUE(before);
  EXPECT_FALSE(before->is_start_up);
  EXPECT_THAT(headline_of(facts).pattern, Not(HasSubstr("start-up")));
}

}  // namespace
}  // namespace lanescope::explain
