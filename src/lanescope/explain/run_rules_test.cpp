// The rules together: order, switches, one step, the headline, and which finding covers which.
#include "lanescope/explain/run_rules.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lanescope/explain/do_first.h"
#include "lanescope/explain/questions.h"
#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramSketch;

Explanation explain_all(const Facts& facts) {
  auto result = run_rules(facts);
  EXPECT_TRUE(result);
  return std::move(*result);
}

Explanation explain_whole(const Trace& trace) { return explain_all(*gather_facts(trace)); }

ProgramSketch small_program() {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k) program.launch({.us = 1});
    program.end();
  }
  return program;
}

std::ptrdiff_t rules_that_need_no_asking() {
  return std::count_if(all_rules().begin(), all_rules().end(),
                       [](const Rule* rule) { return !rule->only_on_request; });
}

TEST(RunRulesTest, TheHeadlineIsTheBound) {
  const Trace trace = small_program().trace();
  const auto facts = gather_facts(trace);
  const auto explanation = run_rules(*facts);
  ASSERT_TRUE(explanation);
  EXPECT_THAT(explanation->headline.pattern, ::testing::StartsWith("CPU-bound"));
  EXPECT_EQ(std::ssize(explanation->runs), rules_that_need_no_asking());
  EXPECT_TRUE(std::is_sorted(explanation->findings.begin(), explanation->findings.end(),
                             [](const Finding& a, const Finding& b) {
                               return a.kind != b.kind ? a.kind < b.kind
                                                       : a.at_stake_ns > b.at_stake_ns;
                             }));
}

// Five steps with waits of 100 us, the first of them `start_up_us` longer.
ProgramSketch with_start_up(std::int64_t start_up_us) {
  ProgramSketch program;
  for (int i = 0; i < 5; ++i) {
    program.step();
    if (i == 0) program.cpu_op("aten::first", start_up_us);
    for (int k = 0; k < 4; ++k) program.launch({.us = 100}).wait("cudaStreamSynchronize").pass(100);
    program.end();
  }
  return program;
}

// The steady steps take about 1 ms each: 4 ms in all. Start-up of 40 ms is what the recording shows
// most of; one of 3 ms is not.
TEST(RunRulesTest, WhatHappenedOnceComesFirstWhenItIsMostOfTheRecording) {
  const auto order = [](const Trace& trace) {
    const auto facts = gather_facts(trace);
    std::vector<std::string> rules;
    for (const Finding& finding : explain_all(*facts).findings)
      if (finding.rule == "host-sync" || finding.rule == "slow-first-step")
        rules.push_back(finding.rule + (finding.leads ? " leads" : ""));
    return rules;
  };
  EXPECT_THAT(order(with_start_up(40'000).trace()),
              ::testing::ElementsAre("slow-first-step leads", "host-sync"));
  EXPECT_THAT(order(with_start_up(3'000).trace()),
              ::testing::ElementsAre("host-sync", "slow-first-step"));
}

// Steps in which the GPU computes for `busy_us` and then waits until the CPU has done 200 us more.
std::string headline_of(std::int64_t busy_us) {
  ProgramSketch program;
  for (int i = 0; i < 5; ++i)
    program.step().launch({.us = busy_us}).wait("cudaDeviceSynchronize").pass(200).end();
  const Trace trace = program.trace();
  return explain_all(*gather_facts(trace)).headline.pattern;
}

TEST(RunRulesTest, ThreeQuartersOfComputeAreMostlyTheGpu) {
  EXPECT_TRUE(headline_of(900).starts_with("Mostly GPU-bound")) << headline_of(900);
  EXPECT_TRUE(headline_of(500).starts_with("No single limit")) << headline_of(500);
  EXPECT_TRUE(headline_of(9000).starts_with("GPU-bound")) << headline_of(9000);
}

TEST(RunRulesTest, ARuleCanBeLeftOutOrAskedAlone) {
  const Trace trace = small_program().trace();
  const auto facts = gather_facts(trace);
  EXPECT_EQ(run_rules(*facts, {.only = {"gpu-bound"}, .off = {}})->runs.size(), 1u);
  EXPECT_EQ(std::ssize(run_rules(*facts, {.only = {}, .off = {"gpu-bound"}})->runs),
            rules_that_need_no_asking() - 1);
  EXPECT_FALSE(run_rules(*facts, {.only = {"no-such-rule"}, .off = {}}));
}

TEST(RunRulesTest, OneStepCanBeChosen) {
  const Trace trace = small_program().trace();
  const auto facts = gather_facts(trace, {.step = 2});
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->selection.steady.size(), 1u);
  EXPECT_EQ(facts->wall.partition.wall_ns, 100'000);
  EXPECT_FALSE(gather_facts(trace, {.step = 9}));
}

TEST(RunRulesTest, AnEmptyTraceAndOneWithoutAGpuAreSpokenOfHonestly) {
  const Trace empty = testing::Sketch().trace();
  EXPECT_TRUE(explain_whole(empty).findings.empty());
  const Trace cpu = testing::Sketch().op("aten::mm", 0, 100).trace();
  const auto facts = gather_facts(cpu);
  EXPECT_THAT(run_rules(*facts)->headline.pattern, ::testing::HasSubstr("no GPU work"));
}

TEST(RunRulesTest, ATraceWithoutStepsIsSpokenOfAsARecording) {
  ProgramSketch program;
  for (int k = 0; k < 300; ++k) program.launch({.us = 1});
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  const Explanation explanation = explain_all(*facts);
  EXPECT_FALSE(explanation.findings.empty());
  for (const Finding& finding : explanation.findings)
    EXPECT_THAT(finding.verdict.pattern, Not(::testing::HasSubstr("per step")));
}

TEST(RunRulesTest, EachRuleHasItsOwnPlaceInTheOrder) {
  const auto rules = all_rules();
  ASSERT_GT(rules.size(), 80u);
  for (std::size_t i = 1; i < rules.size(); ++i)
    EXPECT_LT(rules[i - 1]->order, rules[i]->order) << rules[i]->id;
  EXPECT_EQ(find_rule("host-sync"), *std::find_if(rules.begin(), rules.end(), [](const Rule* rule) {
              return std::string_view(rule->id) == "host-sync";
            }));
  EXPECT_EQ(find_rule("host"), nullptr);
}

// What a row, a call or a kernel is, is an answer and no diagnosis.
TEST(RunRulesTest, SomeRulesRunOnlyWhenAsked) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) program.step().launch({.us = 50}).wait().end();
  const Trace trace = program.trace();
  const Explanation whole = *run_rules(*gather_facts(trace));
  std::vector<std::string> only_on_request;
  for (const Rule* rule : all_rules()) {
    if (!rule->only_on_request) continue;
    only_on_request.emplace_back(rule->id);
    for (const RuleRun& run : whole.runs) EXPECT_NE(run.id, rule->id);
    const auto asked = run_rules(*gather_facts(trace), {.only = {rule->id}, .off = {}});
    EXPECT_EQ(asked->runs.size(), 1u) << rule->id;
    EXPECT_EQ(rules_for_question(rule->question).ids, std::vector<std::string>{rule->id});
  }
  EXPECT_THAT(only_on_request,
              ::testing::UnorderedElementsAre("self-total", "compile-layers", "occupancy-query",
                                              "split-k", "matmul-chain"));
}

// The same events in any order of the file give the same verdicts, numbers and evidence.
TEST(RunRulesTest, TheOrderOfEventsInTheFileDoesNotMatter) {
  struct DrawnEvent {
    std::string category, name;
    std::int64_t start, dur;
    testing::Fields fields;
  };
  std::mt19937 random(11);
  std::vector<DrawnEvent> events;
  std::int64_t cpu = 0, gpu = 0, correlation = 0;
  for (int step = 1; step <= 5; ++step) {
    const std::int64_t begin = cpu;
    for (int k = 0; k < 40; ++k) {
      const std::int64_t op = cpu + 1000 + static_cast<std::int64_t>(random() % 5000);
      const std::int64_t call = op + 2000, done = call + 3000;
      const std::int64_t start = std::max(done + 1500, gpu), dur = 500 + random() % 9000;
      const auto number = std::to_string(random() % 4);
      events.push_back({"cpu_op", fmt::format("aten::op{}", number), op, 7000, {}});
      events.push_back(
          {"cuda_runtime", "cudaLaunchKernel", call, 3000, {.correlation = ++correlation}});
      events.push_back(
          {"kernel",
           fmt::format("kernel{}", number),
           start,
           dur,
           {.stream = 7 + static_cast<std::int64_t>(random() % 2), .correlation = correlation}});
      gpu = start + dur / 2;
      cpu = op + 7500;
    }
    events.push_back(
        {"user_annotation", fmt::format("ProfilerStep#{}", step), begin, cpu - begin - 1, {}});
  }
  const auto describe = [](const std::vector<DrawnEvent>& drawn) {
    testing::Sketch sketch;
    for (const DrawnEvent& each : drawn)
      sketch.slice(each.category, each.name, each.start, each.dur, each.fields);
    const Trace trace = sketch.trace();
    const auto facts = gather_facts(trace);
    const Explanation explanation = explain_all(*facts);
    std::string out;
    const auto add = [&](const Sentence& sentence) {
      out += sentence.pattern;
      for (const Value& value : sentence.values)
        out += fmt::format("|{},{},{}", value.integer, value.real, value.text);
      out += "\n";
    };
    add(explanation.headline);
    for (const Finding& finding : explanation.findings) {
      out += finding.rule + " " + std::to_string(finding.at_stake_ns) + "\n";
      add(finding.verdict);
      for (const Sentence& line : finding.arithmetic) add(line);
      for (const Evidence& evidence : finding.evidence) {
        add(evidence.text);
        if (evidence.slice != kNone<SliceId>)
          out += fmt::format("{}\n", trace.start_ns(evidence.slice));
      }
    }
    return out;
  };
  const std::string expected = describe(events);
  EXPECT_THAT(expected, ::testing::HasSubstr("host-bound"));
  for (int round = 0; round < 5; ++round) {
    std::shuffle(events.begin(), events.end(), random);
    EXPECT_EQ(describe(events), expected);
  }
}

const RuleRun& run_of(const Explanation& explanation, std::string_view id) {
  return *std::find_if(explanation.runs.begin(), explanation.runs.end(),
                       [&](const RuleRun& run) { return run.id == id; });
}

// A copy of pageable memory (100 us) and one of pinned memory in each step, while nothing else runs.
ProgramSketch copying(std::int64_t pinned_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 100});
    program.launch(ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", 100));
    if (pinned_us > 0)
      program.launch(ProgramSketch::memcpy("Memcpy HtoD (Pinned -> Device)", pinned_us));
    program.end();
  }
  return program;
}

TEST(RunRulesTest, AFindingThatAnotherTellsMoreExactlyIsLeftOut) {
  const Explanation explanation = explain_whole(copying(0).trace());
  EXPECT_EQ(run_of(explanation, "pageable-copy").state, RuleRun::State::kFound);
  EXPECT_EQ(run_of(explanation, "exposed-copy").state, RuleRun::State::kCovered);
  EXPECT_EQ(run_of(explanation, "exposed-copy").covered_by, "pageable-copy");
  for (const Finding& finding : explanation.findings) EXPECT_NE(finding.rule, "exposed-copy");
}

// 40 of 140 us are another copy's: the general finding says something that the other does not.
TEST(RunRulesTest, AFindingOfWhichAPartIsUntoldStays) {
  const Explanation explanation = explain_whole(copying(40).trace());
  EXPECT_EQ(run_of(explanation, "pageable-copy").state, RuleRun::State::kFound);
  EXPECT_EQ(run_of(explanation, "exposed-copy").state, RuleRun::State::kFound);
}

TEST(RunRulesTest, ARuleThatIsAskedByIdIsNeverCovered) {
  const Trace trace = copying(0).trace();
  const auto facts = gather_facts(trace);
  const auto explanation =
      run_rules(*facts, {.only = {"exposed-copy", "pageable-copy"}, .off = {}});
  ASSERT_TRUE(explanation);
  EXPECT_EQ(explanation->findings.size(), 2u);
}

// Kernels without launch calls, 5 us of every 100: nothing tells what the GPU waited for.
TEST(RunRulesTest, AMostlyIdleGpuIsNotCalledWithoutALimit) {
  testing::Sketch sketch;
  for (int i = 0; i < 20; ++i) sketch.slice("kernel", "k", us(100 * i), us(5), {.stream = 7});
  const Explanation idle = explain_whole(sketch.trace());
  EXPECT_THAT(idle.headline.pattern, ::testing::StartsWith("Idle:"));
  ASSERT_FALSE(idle.findings.empty());
  EXPECT_EQ(idle.findings[0].rule, "gpu-idle");
  EXPECT_THAT(idle.findings[0].try_next.at(0), HasSubstr("ProfilerActivity.CPU"));
  testing::Sketch busier;
  for (int i = 0; i < 20; ++i) busier.slice("kernel", "k", us(100 * i), us(70), {.stream = 7});
  EXPECT_THAT(explain_whole(busier.trace()).headline.pattern, HasSubstr("No single limit"));
}

// A schedule without repeat=1 begins again, and the loop ends: a step of 100 us with seven operators, of which those in the
// loader do not count. With eight, or of 1 ms, it is a step like others.
TEST(RunRulesTest, AStepInWhichTheLoopEndsIsNotJudged) {
  const auto headline = [](int operators, std::int64_t pause_us) {
    testing::ProgramSketch program;
    program.step().begin("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    for (int i = 0; i < 9; ++i) program.cpu_op("aten::randperm", 1);
    program.end();
    for (int i = 0; i < operators; ++i) program.cpu_op("aten::add", 1);
    program.pass(pause_us).end();
    const Trace trace = program.trace();
    const auto facts = gather_facts(trace);
    const auto explanation = run_rules(*facts);
    const bool is_end = explanation->headline.pattern.starts_with("The only step");
    EXPECT_TRUE(!is_end || do_first(*facts, *explanation).empty());
    return is_end;
  };
  EXPECT_TRUE(headline(7, 50));
  EXPECT_FALSE(headline(8, 50));
  EXPECT_FALSE(headline(7, 1'000));
}

}  // namespace
}  // namespace lanescope::explain
