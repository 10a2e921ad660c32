#include "lanescope/explain/do_first.h"
#include "lanescope/explain/time_takers.h"

#include <gtest/gtest.h>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/predicted_gains.h"
#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Four steps; one launch takes 10 us of the CPU and 1 us of the GPU, so that a step takes 100 us.
ProgramSketch slow_cpu() { return loop(4, 10, {.us = 1}); }

Finding cost(const char* rule, std::int64_t at_stake_ns, double ratio, const char* advice) {
  Finding finding;
  finding.rule = rule;
  finding.verdict = say("long words");
  finding.at_stake_ns = at_stake_ns;
  finding.at_stake_ratio = ratio;
  finding.try_next = {advice};
  return finding;
}

std::vector<std::string> rules_of(const Explanation& all, const std::vector<Suggestion>& first) {
  std::vector<std::string> rules;
  for (const Suggestion& each : first) rules.push_back(all.findings[each.finding].rule);
  return rules;
}

class DoFirstTest : public ::testing::Test {
 protected:
  std::vector<std::string> chosen() { return rules_of(all_, do_first(facts_, all_)); }
  Trace trace_ = slow_cpu().trace();
  Facts facts_ = *gather_facts(trace_);
  Explanation all_;
};

TEST_F(DoFirstTest, TheLargestThreeCostsComeFirst) {
  all_.findings = {cost("a", 1'000, 0.05, "do a"), cost("b", 9'000, 0.09, "do b"),
                   cost("c", 8'000, 0.08, "do c"), cost("d", 5'000, 0.05, "do d")};
  EXPECT_EQ(chosen(), (std::vector<std::string>{"b", "c", "d"}));
}

TEST_F(DoFirstTest, AGainIsNeverMoreThanTheStep) {
  all_.findings = {cost("a", 7'000'000, 70.0, "do a")};
  const auto first = do_first(facts_, all_);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].gain_ns, 100'000);  // the step
  EXPECT_EQ(first[0].gain_ratio, 1.0);
}

TEST_F(DoFirstTest, WhatIsNothingToActOnIsLeftOut) {
  for (const FindingKind kind :
       {FindingKind::kWhere, FindingKind::kMemory, FindingKind::kNormal, FindingKind::kTrust}) {
    all_.findings = {cost("a", 9'000, 0.09, "do a")};
    all_.findings[0].kind = kind;
    EXPECT_EQ(chosen().size(), 0u) << finding_kind_name(kind);
  }
  all_.findings = {cost("small", 900, 0.009, "do a")};
  EXPECT_EQ(chosen().size(), 0u);
  all_.findings = {cost("just enough", 1'000, 0.01, "do a")};
  EXPECT_EQ(chosen().size(), 1u);
}

TEST_F(DoFirstTest, WhatEndsTheProgramComesFirstAndHasNoGain) {
  all_.findings = {cost("a", 9'000, 0.09, "do a"), cost("memory", 0, 0, "do m")};
  all_.findings[1].kind = FindingKind::kEnds;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"memory", "a"}));
  EXPECT_EQ(do_first(facts_, all_)[0].gain_ns, 0);
}

TEST_F(DoFirstTest, TheSameActionIsSaidOnce) {
  all_.findings = {cost("a", 9'000, 0.09, "the same"), cost("b", 8'000, 0.08, "the same"),
                   cost("c", 7'000, 0.07, "another")};
  EXPECT_EQ(chosen(), (std::vector<std::string>{"a", "c"}));
}

// One graph removes the waiting for many small launches: one line, with the exact fix.
TEST_F(DoFirstTest, LaunchesThatAGraphReplacesAreNotSaidTwice) {
  all_.findings = {cost("tiny-kernels", 9'000, 0.09, "a larger batch"),
                   cost("graph-opportunity", 8'000, 0.08, "one graph")};
  EXPECT_EQ(chosen(), (std::vector<std::string>{"graph-opportunity"}));
  all_.findings.pop_back();
  EXPECT_EQ(chosen(), (std::vector<std::string>{"tiny-kernels"}));
}

// 40 launches of 10 us, with kernels of 5 us each: without the profiler a step takes about 244 us, of which the GPU works 200, and
// the CPU's time is unsure by 68. So the GPU may be the limit, and its work comes before launches. With 3 us it works only 120.
TEST(DoFirstOrderTest, WorkOfTheGpuComesBeforeLaunchesWhereItMayBeTheLimit) {
  const auto order = [](std::int64_t kernel_us) {
    const Trace trace = loop(4, 40, {.us = kernel_us}).trace();
    const Facts facts = *gather_facts(trace);
    Explanation all;
    all.findings = {cost("tiny-kernels", 30'000, 0.1, "a graph"),
                    cost("unfused-chain", 22'000, 0.08, "one kernel")};
    all.findings[1].gain_is_bound = true;
    all.gains = GainModel::of(facts);
    return rules_of(all, do_first(facts, all));
  };
  EXPECT_EQ(order(5), (std::vector<std::string>{"unfused-chain", "tiny-kernels"}));
  EXPECT_EQ(order(3), (std::vector<std::string>{"tiny-kernels", "unfused-chain"}));
}

// The GPU works for 800 us of a step and is idle for about 60: it is the limit. After waits it idles for 1 us, less than a twentieth,
// or for 60. With 600 us of idle time the CPU is the limit.
TEST(DoFirstOrderTest, WaitsAreLeftOutWhereTheGpuIsTheLimitAndHardlyIdles) {
  const auto chosen = [](std::int64_t cpu_us, std::int64_t idle_us) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int k = 0; k < 40; ++k) p.kernel("gemm", 20);
      p.wait().pass(cpu_us);
    });
    const Trace trace = program.trace();
    const Facts facts = *gather_facts(trace);
    Explanation all;
    all.findings = {cost("host-sync", 30'000, 0.1, "no wait")};
    all.findings[0].own_cost_ns = 30'000;
    all.findings[0].idle_after_waits_ns = us(idle_us);
    all.gains = GainModel::of(facts);
    return rules_of(all, do_first(facts, all)).size();
  };
  EXPECT_EQ(chosen(60, 1), 0u);
  EXPECT_EQ(chosen(60, 60), 1u);
  EXPECT_EQ(chosen(600, 1), 1u);
}

TEST_F(DoFirstTest, TheBoundIsOneWhereNoCostExplainsHalfOfIt) {
  all_.findings = {cost("bound", 80'000, 0.8, "do bound"), cost("a", 39'000, 0.39, "do a")};
  all_.findings[0].kind = FindingKind::kBound;
  EXPECT_EQ(chosen(),
            (std::vector<std::string>{"a", "bound"}));  // what names its cause comes first
  all_.findings[1].at_stake_ns = 26'000;                // but not with less than a third
  EXPECT_EQ(chosen(), (std::vector<std::string>{"bound", "a"}));
  all_.findings[1].at_stake_ns = 41'000;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"a"}));
}

TEST_F(DoFirstTest, IdleTimeInGeneralIsOneWhereNoCostExplainsHalfOfIt) {
  all_.findings = {cost("gpu-idle", 50'000, 0.5, "do idle"), cost("a", 20'000, 0.2, "do a")};
  EXPECT_EQ(chosen(), (std::vector<std::string>{"a", "gpu-idle"}));
  all_.findings[1].at_stake_ns = 26'000;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"a"}));
}

TEST_F(DoFirstTest, MemoryThatIsFullComesBeforeCosts) {
  all_.findings = {cost("a", 9'000, 0.09, "do a"), cost("memory-limit", 0, 0, "do m")};
  all_.findings[1].kind = FindingKind::kMemory;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"a"}));
  all_.findings[1].brief = say("full");
  EXPECT_EQ(chosen(), (std::vector<std::string>{"memory-limit", "a"}));
}

TEST_F(DoFirstTest, WhatHappenedOnceIsOneWhereTheRuleSaysWhatToChange) {
  all_.findings = {cost("once", 900'000, 0, "leave it out")};
  all_.findings[0].kind = FindingKind::kOnce;
  all_.findings[0].leads = true;
  EXPECT_EQ(chosen().size(), 0u);
  all_.findings[0].brief = say("It took long");
  EXPECT_EQ(chosen().size(), 1u);
}

// Found iterations begin with the program, marked steps do not.
TEST_F(DoFirstTest, WhatHappenedOnceComesAfterTheCostsOfIterations) {
  all_.findings = {cost("once", 900'000, 0, "leave it out"), cost("a", 9'000, 0.09, "do a")};
  all_.findings[0].kind = FindingKind::kOnce;
  all_.findings[0].leads = true;
  all_.findings[0].brief = say("It took long");
  EXPECT_EQ(chosen(), (std::vector<std::string>{"once", "a"}));
  facts_.steps.found.emplace();
  EXPECT_EQ(chosen(), (std::vector<std::string>{"a", "once"}));
  all_.findings[1].at_stake_ratio = 0.04;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"once", "a"}));
}

// Copies of input have no place of their own. That of the few copies inside an operator is not theirs.
TEST(PlaceOfFindingTest, IsThatOfTheFirstEventOnly) {
  ProgramSketch program;
  program.step().launch({.us = 90, .op = "aten::copy_"}).launch({.us = 1, .op = "aten::mm"}).end();
  const Trace trace = program.trace();
  const Facts facts = *gather_facts(trace);
  const auto& work = facts.device().timeline.work;
  Explanation all;
  all.findings = {cost("a", 9'000, 0.09, "do a")};
  all.findings[0].evidence = {{kNone<SliceId>, say("only a sentence")},
                              {work.at(0).slice, say("most of the cost")},
                              {work.at(1).slice, say("little of it")}};
  EXPECT_TRUE(do_first(facts, all).at(0).place.pattern.empty());
  std::swap(all.findings[0].evidence[1], all.findings[0].evidence[2]);
  EXPECT_EQ(do_first(facts, all).at(0).place.values.at(0).text, "aten::mm");
}

// Of three pieces of work, one or two lie in the range of the first event; of two, one.
TEST(PlaceOfFindingTest, APlaceWithHalfOfTheWorkOrLessIsNotGiven) {
  const auto place_with = [](const std::vector<const char*>& others) {
    ProgramSketch program;
    program.step().begin("reference").launch({.us = 90, .op = "aten::mm"}).end();
    for (const char* range : others)
      program.begin(range).launch({.us = 90, .op = "aten::mm"}).end();
    program.end();
    const Trace trace = program.trace();
    const Facts facts = *gather_facts(trace);
    Explanation all;
    all.findings = {cost("a", 9'000, 0.09, "do a")};
    const auto& work = facts.device().timeline.work;
    all.findings[0].evidence = {{work.at(0).slice, say("the longest")}};
    for (const auto& each : work) all.findings[0].all_work.push_back(each.slice);
    return do_first(facts, all).at(0).place;
  };
  EXPECT_TRUE(place_with({"policy", "policy"}).pattern.empty());
  EXPECT_TRUE(place_with({"policy"}).pattern.empty());
  EXPECT_EQ(place_with({"reference", "policy"}).pattern, "in range {}");
}

// "aten::item makes the CPU wait (in aten::item)" says it twice.
TEST(PlaceOfFindingTest, IsNotSaidAgainWhereTheSentenceNamesIt) {
  ProgramSketch program;
  program.step().launch({.us = 90, .op = "aten::mm"}).end();
  const Trace trace = program.trace();
  const Facts facts = *gather_facts(trace);
  for (const char* named : {"aten::mm", "aten::mm_out"}) {
    Explanation all;
    all.findings = {cost("a", 9'000, 0.09, "do a")};
    all.findings[0].brief = say("{} is slow", {name(named)});
    all.findings[0].evidence = {{facts.device().timeline.work.at(0).slice, say("all of it")}};
    EXPECT_EQ(do_first(facts, all).at(0).place.pattern.empty(), std::string(named) == "aten::mm");
  }
}

// "The CPU launches too slowly" next to "1,000 kernels, 90 % of them short" says one thing twice.
TEST_F(DoFirstTest, TheBoundIsLeftOutWhereItsLaunchesAreTold) {
  all_.findings = {cost("bound", 80'000, 0.8, "do bound"),
                   cost("tiny-kernels", 30'000, 0.3, "a larger batch")};
  all_.findings[0].kind = FindingKind::kBound;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"tiny-kernels"}));
  all_.findings[1].at_stake_ns = 10'000;  // an eighth: most of it is something else
  EXPECT_EQ(chosen(), (std::vector<std::string>{"bound", "tiny-kernels"}));
}

// A graph spares the launches of a loop as well as one call instead of the loop: the loop is the cause.
TEST_F(DoFirstTest, AGraphIsLeftOutWhereACauseRemovesItsTime) {
  const std::int64_t waiting_ns = facts_.per_step(facts_.waiting_for_cpu_ns());
  all_.findings = {cost("graph-opportunity", 60'000, 0.6, "one graph"),
                   cost("python-indexing", waiting_ns - 10'000, 0.7, "one call")};
  all_.findings[1].waiting_ns = waiting_ns - 10'000;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"python-indexing"}));
  // A graph gains 20 us more.
  all_.findings[1].at_stake_ns = all_.findings[1].waiting_ns = waiting_ns - 20'000;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"python-indexing", "graph-opportunity"}));
  // Of the GPU's work a graph removes nothing.
  all_.findings[1] = cost("costly-operator", waiting_ns - 10'000, 0.7, "another operator");
  EXPECT_EQ(chosen(), (std::vector<std::string>{"costly-operator", "graph-opportunity"}));
  all_.findings[1].waiting_ns = all_.findings[1].at_stake_ns;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"costly-operator"}));
}

// Between small kernels the GPU may lose more than any one cause: one that is not predicted either comes first only with most of it.
TEST_F(DoFirstTest, ACauseWithABoundOnlyComesAfterLaunchesThatLoseMuchMore) {
  all_.findings = {cost("tiny-kernels", 30'000, 0.3, "one graph"),
                   cost("broadcast-buffers", 15'000, 0.15, "do not send them")};
  EXPECT_EQ(chosen(), (std::vector<std::string>{"tiny-kernels", "broadcast-buffers"}));
  all_.findings[1].at_stake_ns = 20'000;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"broadcast-buffers", "tiny-kernels"}));
}

// How much of a round is left after a change is unknown, and so is what a graph would gain: the loop says which launches.
TEST_F(DoFirstTest, ALoopWhoseGainIsABoundComesBeforeLaunchesInGeneral) {
  all_.findings = {cost("tiny-kernels", 30'000, 0.3, "one graph"),
                   cost("looped-calls", 20'000, 0.2, "one call")};
  all_.findings[1].gain_is_bound = true;
  EXPECT_EQ(chosen().front(), "looped-calls");
  all_.findings[1].at_stake_ns = 19'000;
  EXPECT_EQ(chosen().front(), "tiny-kernels");
  // Of the GPU's work, launches are no other bound.
  all_.findings[1] = cost("few-blocks", 20'000, 0.2, "a larger batch");
  all_.findings[1].gain_is_bound = true;
  EXPECT_EQ(chosen().front(), "tiny-kernels");
}

// After a wait the GPU is idle for the launches that follow, and for code without events.
TEST_F(DoFirstTest, AWaitComesAfterCodeThatTakesTwiceAsLong) {
  all_.findings = {cost("python-hole", 9'000, 0.09, "look at it"),
                   cost("host-sync", 4'500, 0.045, "read it later")};
  EXPECT_EQ(chosen(), (std::vector<std::string>{"python-hole", "host-sync"}));
  all_.findings[1].at_stake_ns = 6'000;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"host-sync", "python-hole"}));
}

// What code without events does is not known; what sends buffers is.
TEST_F(DoFirstTest, ANamedCauseComesBeforeCodeWithoutEvents) {
  all_.findings = {cost("python-hole", 9'000, 0.09, "look at it"),
                   cost("broadcast-buffers", 4'000, 0.04, "do not send them")};
  EXPECT_EQ(chosen(), (std::vector<std::string>{"broadcast-buffers", "python-hole"}));
  all_.findings[1].at_stake_ns = 2'000;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"python-hole", "broadcast-buffers"}));
}

// A larger batch makes more of a kernel's time; a sort that is left out gives time back.
TEST_F(DoFirstTest, ANamedCauseComesBeforeAFixOfUnknownGain) {
  all_.findings = {cost("few-blocks", 9'000, 0.09, "use a larger batch"),
                   cost("costly-operator", 8'000, 0.08, "use topk")};
  EXPECT_EQ(chosen(), (std::vector<std::string>{"few-blocks", "costly-operator"}));
  all_.findings[0].gain_is_bound = true;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"costly-operator", "few-blocks"}));
}

// Calls that can be left out surely gain, though how much is only a bound: what gains half as much does not come before them.
// Few blocks may gain nothing.
TEST_F(DoFirstTest, CallsThatCanBeLeftOutComeBeforeWhatGainsHalfAsMuch) {
  all_.findings = {cost("cpu-built-tensor", 9'000, 0.09, "make it on the GPU"),
                   cost("costly-operator", 5'000, 0.05, "use topk")};
  all_.findings[0].gain_is_bound = true;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"cpu-built-tensor", "costly-operator"}));
  all_.findings[1].at_stake_ns = 6'000;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"costly-operator", "cpu-built-tensor"}));
  all_.findings = {cost("few-blocks", 9'000, 0.09, "use a larger batch"),
                   cost("costly-operator", 5'000, 0.05, "use topk")};
  all_.findings[0].gain_is_bound = true;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"costly-operator", "few-blocks"}));
}

// So do calls that a finding names one by one.
TEST_F(DoFirstTest, NamedCallsThatCanBeLeftOutComeBeforeWhatGainsHalfAsMuch) {
  all_.findings = {cost("whole-table", 9'000, 0.09, "one table"),
                   cost("optimizer-passes", 5'000, 0.05, "fused")};
  all_.findings[0].gain_is_bound = true;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"optimizer-passes", "whole-table"}));
  all_.findings[0].spared_calls = {SliceId{0}};
  EXPECT_EQ(chosen(), (std::vector<std::string>{"whole-table", "optimizer-passes"}));
  all_.findings[1].at_stake_ns = 6'000;
  EXPECT_EQ(chosen(), (std::vector<std::string>{"optimizer-passes", "whole-table"}));
}

// A graph that is known to gain 60 us comes before a cause of 20 us of other time, and after one of 35 us of the same
// waiting, because it gains only 25 us beyond that. Where nothing predicts it, 60 us are a bound.
TEST_F(DoFirstTest, APredictedGeneralGainCountsBeyondTheCause) {
  predict_gains(facts_, all_);
  ASSERT_TRUE(all_.gains);
  const auto chosen_with = [&](const char* cause, std::int64_t gain_ns, Gain::State state) {
    all_.findings = {cost("graph-opportunity", 60'000, 0.6, "one graph"),
                     cost(cause, gain_ns, 0.3, "the cause")};
    all_.findings[0].gain = {state, 60'000, 60'000};
    all_.findings[1].gain = {Gain::State::kPredicted, gain_ns, gain_ns};
    if (all_.findings[1].rule == "python-indexing") all_.findings[1].waiting_ns = gain_ns;
    return chosen().front();
  };
  EXPECT_EQ(chosen_with("python-indexing", 35'000, Gain::State::kPredicted), "python-indexing");
  EXPECT_EQ(chosen_with("python-indexing", 25'000, Gain::State::kPredicted), "graph-opportunity");
  EXPECT_EQ(chosen_with("costly-operator", 35'000, Gain::State::kPredicted), "graph-opportunity");
  EXPECT_EQ(chosen_with("costly-operator", 25'000, Gain::State::kUnsure), "costly-operator");
}

TEST_F(DoFirstTest, OneOperatorIsToldOnce) {
  all_.findings = {cost("a", 9'000, 0.09, "do a"), cost("b", 8'000, 0.08, "do b")};
  all_.findings[0].brief = say("{} sorts its indices", {name("aten::index")});
  all_.findings[1].brief = say("{} makes the CPU wait", {name("aten::index")});
  EXPECT_EQ(chosen(), (std::vector<std::string>{"a"}));
  all_.findings[1].brief = say("{} makes the CPU wait", {name("aten::item")});
  EXPECT_EQ(chosen(), (std::vector<std::string>{"a", "b"}));
}

TEST_F(DoFirstTest, ShortFormsReplaceVerdictAndAdvice) {
  all_.findings = {cost("a", 9'000, 0.09, "keep it short, please")};
  auto first = do_first(facts_, all_);
  EXPECT_EQ(first[0].verdict.pattern, "long words");
  EXPECT_EQ(first[0].action.values.at(0).text, "Keep it short, please");
  all_.findings[0].brief = say("short");
  all_.findings[0].action = say("one change");
  first = do_first(facts_, all_);
  EXPECT_EQ(first[0].verdict.pattern, "short");
  EXPECT_EQ(first[0].action.pattern, "one change");
}

TEST_F(DoFirstTest, CodeKeepsItsSmallLetters) {
  for (const char* code : {"torch.compile it", "fused=True", "zero_grad(set_to_none=True)"}) {
    all_.findings = {cost("a", 9'000, 0.09, code)};
    EXPECT_EQ(do_first(facts_, all_)[0].action.values.at(0).text, code);
  }
}

// Each step: 60 us of a, 30 us of b, and what comes before them.
TEST(LargestTimeTakersTest, OwnersTheLargestFirst) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step()
        .launch({.name = "c", .us = 4, .op = "aten::add"})
        .launch({.name = "a", .us = 60, .op = "aten::bmm"})
        .launch({.name = "b", .us = 30, .op = "aten::mm"})
        .wait()
        .end();
  const Trace trace = program.trace();
  const auto takers = largest_time_takers(*gather_facts(trace));
  ASSERT_GE(takers.size(), 2u);
  EXPECT_EQ(takers[0].what.values.at(0).text, "aten::bmm");
  EXPECT_GE(takers[0].per_step_ns, 60'000);
  EXPECT_EQ(takers[1].what.values.at(0).text, "aten::mm");
  EXPECT_GE(takers[1].per_step_ns, 30'000);
}

// 100 us of sort at two lines, 120 us of mm at a third.
TEST(LargestTimeTakersTest, AddsUpAnOperatorOverItsLines) {
  const auto takers_of = [](const char* second) {
    ProgramSketch program;
    const auto line = [&](const char* frame, const char* op, std::int64_t kernel_us) {
      const std::int64_t start = program.cpu_us();
      program.begin_op(op).kernel(op, kernel_us).end();
      program.sketch().slice("python_function", frame, us(start), us(program.cpu_us() - start));
    };
    program.steps(4, [&](ProgramSketch&) {
      line("serve.py(3): first", "aten::sort", 100);
      line("serve.py(9): second", "aten::mm", 120);
      line("serve.py(15): third", second, 100);
    });
    const Trace trace = program.trace();
    const auto facts = gather_facts(trace);
    return largest_time_takers(*facts);
  };
  const auto takers = takers_of("aten::sort");
  ASSERT_EQ(takers.size(), 2U);
  EXPECT_EQ(takers[0].what.values.at(0).integer, 2);
  EXPECT_EQ(takers[0].what.values.at(1).text, "aten::sort");
  EXPECT_GE(takers[0].per_step_ns, 200'000);
  EXPECT_EQ(takers_of("aten::topk").size(), 3U);  // another operator
}

// Layers of two classes call one line of a wrapper: the line is said once, and then the classes.
TEST(LargestTimeTakersTest, NamesModulesThatShareALine) {
  ProgramSketch program;
  const auto layer = [&](const char* module, const char* op) {
    const std::int64_t start = program.cpu_us();
    program.pass(2).begin_op(op).kernel(op, 100).end().pass(2);
    const std::int64_t length = program.cpu_us() - start;
    program.sketch()
        .slice("python_function", module, us(start), us(length))
        .slice("python_function", "wrap.py(3): call", us(start + 1), us(length - 2));
  };
  program.steps(4, [&](ProgramSketch&) {
    layer("nn.Module: Gate_1", "aten::mm");
    layer("nn.Module: Norm_2", "aten::layer_norm");
    layer("nn.Module: Up_7", "aten::mm");
  });
  const Trace trace = program.trace();
  const auto takers = largest_time_takers(*gather_facts(trace));
  ASSERT_EQ(takers.size(), 2U);
  const Sentence& what = takers[0].what;
  EXPECT_EQ(what.pattern.substr(0, what.pattern.find(';')), "{} x {}, in {}, nn.Module {}, {}");
  ASSERT_GE(what.values.size(), 5U);
  EXPECT_EQ(what.values[2].text, "call (wrap.py:3)");
  EXPECT_EQ(what.values[3].text + what.values[4].text, "GateUp");
}

TEST(LargestTimeTakersTest, WithoutGpuWorkEventsOfTheCpu) {
  ProgramSketch program;
  for (int i = 0; i < 3; ++i) program.step().cpu_op("aten::conv2d", 90).pass(10).end();
  const Trace trace = program.trace();
  const auto takers = largest_time_takers(*gather_facts(trace));
  ASSERT_EQ(takers.size(), 1u);
  EXPECT_EQ(takers[0].what.values.at(0).text, "aten::conv2d");
  EXPECT_EQ(takers[0].per_step_ns, 90'000);
  EXPECT_DOUBLE_EQ(takers[0].ratio, 0.9);
}

TEST(LargestTimeTakersTest, OfNothingNothing) {
  const Trace trace;
  EXPECT_TRUE(largest_time_takers(*gather_facts(trace)).empty());
}

// One finding is about the whole function in which the first call runs; the other about one, two or three equal calls.
TEST_F(DoFirstTest, AFindingIsToldWithAFunctionThatHasHalfOfIt) {
  const auto calls = slices_starting_with(facts_, "aten::mm");
  ASSERT_GE(calls.size(), 3u);
  const TrackId thread = trace_.slices().track[raw(calls[0])];
  const auto with = [&](const std::vector<SliceId>& spared, FindingKind kind = FindingKind::kCost) {
    all_.findings = {cost("function", 9'000, 0.09, "do f"), cost("calls", 8'000, 0.08, "do c")};
    all_.findings[0].kind = kind;
    all_.findings[0].told_thread = thread;
    all_.findings[0].told_windows = {{trace_.start_ns(calls[0]), trace_.end_ns(calls[0])}};
    all_.findings[1].evidence = {{calls[0], say("the first")}};
    all_.findings[1].spared_calls = spared;
    return chosen();
  };
  EXPECT_EQ(with({}), std::vector<std::string>{"function"});
  EXPECT_EQ(with({calls[0], calls[1]}), std::vector<std::string>{"function"});
  EXPECT_EQ(with({calls[0], calls[1], calls[2]}), (std::vector<std::string>{"function", "calls"}));
  // A function that is not told itself hides nothing.
  EXPECT_EQ(with({}, FindingKind::kWhere), std::vector<std::string>{"calls"});
}

TEST_F(DoFirstTest, CodeIsToldWithAFunctionThatHasHalfOfIt) {
  const auto with = [&](std::int64_t end_ns, TrackId thread) {
    all_.findings = {cost("function", 9'000, 0.09, "do f"), cost("code", 8'000, 0.08, "do c")};
    all_.findings[0].told_thread = TrackId{0};
    all_.findings[0].told_windows = {{1'000, 2'000}};
    all_.findings[1].spared_thread = thread;
    all_.findings[1].spared_windows = {{1'500, end_ns}};
    return chosen();
  };
  EXPECT_EQ(with(2'500, TrackId{0}), std::vector<std::string>{"function"});
  EXPECT_EQ(with(2'501, TrackId{0}), (std::vector<std::string>{"function", "code"}));
  EXPECT_EQ(with(2'500, TrackId{1}), (std::vector<std::string>{"function", "code"}));
}

}  // namespace
}  // namespace lanescope::explain
