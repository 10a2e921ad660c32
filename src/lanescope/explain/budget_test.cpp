#include "lanescope/explain/budget.h"

#include <gtest/gtest.h>

#include "lanescope/explain/do_first.h"
#include "lanescope/explain/predicted_gains.h"
#include "lanescope/testing/program_sketch.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Three steps of 1 + 2: each launches a gemm of 50 us (aten::mm) and a copy of 10 us from pageable
// memory, then waits for the GPU. By hand, t = 0 at the start of a step:
//   CPU: mm [0, 10), its call [3, 7); copy [10, 20), its call [13, 17); wait [20, 72): until 2 us
//        after the GPU is done, and 1 for the operator around it
//   GPU: gemm [9, 59), copy [59, 69)
Trace three_steps() {
  ProgramSketch sketch;
  for (int i = 0; i < 3; ++i) {
    sketch.step();
    sketch.launch({.us = 50});
    sketch.launch(ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", 10));
    sketch.wait().end();
  }
  return sketch.trace();
}

double measured(const Facts& facts, const char* key) {
  const Measured value = compute_measure(facts, *find_measure(key));
  const auto* found = std::get_if<MeasuredValue>(&value);
  EXPECT_NE(found, nullptr) << key;
  return found ? found->real() : -1;
}

TEST(MeasuresTest, NumbersOfAStepByHand) {
  const Trace trace = three_steps();
  const Facts facts = *gather_facts(trace);
  EXPECT_EQ(measured(facts, "steps"), 2);
  EXPECT_EQ(measured(facts, "wall"), 72'000);
  EXPECT_EQ(measured(facts, "median_wall"), 72'000);
  EXPECT_EQ(measured(facts, "longest_wall"), 72'000);
  EXPECT_EQ(measured(facts, "cpu_wall"), 72'000);
  EXPECT_EQ(measured(facts, "compute"), 50'000);
  EXPECT_EQ(measured(facts, "exposed_copy"), 10'000);
  EXPECT_EQ(measured(facts, "exposed_communication"), 0);
  EXPECT_EQ(measured(facts, "idle"), 12'000);
  EXPECT_EQ(measured(facts, "kernels"), 1);
  EXPECT_EQ(measured(facts, "copies"), 1);
  EXPECT_EQ(measured(facts, "copy_bytes"), 1'000'000);
  EXPECT_EQ(measured(facts, "memsets"), 0);
  EXPECT_EQ(measured(facts, "launches"), 2);
  // The pageable copy waits in every step; the synchronize of the last one comes after the last
  // launch and ends the recording: 2 + 1 in two steps.
  EXPECT_EQ(measured(facts, "host_waits"), 1.5);
}

TEST(MeasuresTest, EveryTimeOfAStepIsAPartOfTheWall) {
  const Trace trace = three_steps();
  const Facts facts = *gather_facts(trace);
  double idle = 0;
  for (const Measure& each : all_measures())
    if (find_idle_cause(each.key)) idle += measured(facts, each.key);
  EXPECT_EQ(idle, measured(facts, "idle"));
}

// On device 0 the allocator gives out 1000, 3000, then 2000 bytes; device 1 and the CPU do not
// count.
TEST(MeasuresTest, PeakMemoryIsThatOfTheMainDevice) {
  testing::Sketch sketch;
  sketch.kernel("gemm", 0, 1000);
  EXPECT_TRUE(std::holds_alternative<Unmeasured>(
      compute_measure(*gather_facts(testing::Sketch().kernel("gemm", 0, 1000).trace()),
                      *find_measure("peak_memory"))));
  struct Record {
    std::int64_t time, type, device, bytes, allocated, reserved;
  };
  TraceBuilder& builder = sketch.builder();
  const Scalar id{false, 100, kNone<StringId>};
  const TrackId thread = builder.thread_track(id, id);
  for (const Record& each : {Record{10, 1, 0, 1000, 1000, 4096},
                             {20, 1, 0, 2000, 3000, 4096},
                             {30, 1, 0, -1000, 2000, 4096},
                             {40, 1, 1, 9000, 9000, 9000},
                             {50, 0, -1, 8000, 8000, 8000}}) {
    builder.args().begin();
    for (const auto& [key, value] : {std::pair("Device Type", each.type),
                                     {"Device Id", each.device},
                                     {"Bytes", each.bytes},
                                     {"Total Allocated", each.allocated},
                                     {"Total Reserved", each.reserved}})
      builder.args().add_int(builder.intern(key), arg_key(key), value);
    builder.add_instant(thread, builder.category("cpu_instant_event"), builder.intern("[memory]"),
                        each.time, 't', builder.args().end());
  }
  const Trace trace = sketch.trace();
  const Facts facts = *gather_facts(trace);
  EXPECT_EQ(measured(facts, "peak_memory"), 3000);
  EXPECT_EQ(measured(facts, "peak_reserved"), 4096);
  const auto evidence = measure_evidence(facts, *find_measure("peak_memory"));
  ASSERT_EQ(evidence.size(), 1u);
  EXPECT_EQ(evidence[0].text.values[0].integer, 20);
  EXPECT_EQ(evidence[0].text.values[1].integer, 2000);
}

TEST(BudgetTest, UnitsOfALimit) {
  const auto parse = [](const char* key, const char* text) {
    return parse_limit(*find_measure(key), true, text);
  };
  EXPECT_EQ(parse("wall", "12 ms")->value, 12e6);
  EXPECT_EQ(parse("wall", "1.5us")->value, 1500);
  EXPECT_EQ(parse("wall", " 2 s ")->value, 2e9);
  EXPECT_EQ(parse("idle", "7 ns")->value, 7);
  EXPECT_EQ(parse("copy_bytes", "2 MiB")->value, 2 * 1048576);
  EXPECT_EQ(parse("copy_bytes", "3KB")->value, 3072);
  EXPECT_EQ(parse("launches", "120")->value, 120);
  EXPECT_EQ(parse("launches", "2.5")->value, 2.5);
  ASSERT_TRUE(parse("idle", "5 %"));
  EXPECT_TRUE(parse("idle", "5 %")->is_share);
  EXPECT_DOUBLE_EQ(parse("idle", "5 %")->value, 0.05);
  for (const auto& [key, text] : {std::pair("wall", "12"),
                                  {"wall", "5 %"},
                                  {"wall", "-1 ms"},
                                  {"wall", "nan ms"},
                                  {"wall", "inf s"},
                                  {"wall", "1e3 ms"},
                                  {"wall", "12 hours"},
                                  {"wall", ""},
                                  {"wall", "99999999 s"},
                                  {"idle", "101 %"},
                                  {"launches", "3 ms"},
                                  {"copies", "two"},
                                  {"copy_bytes", "5"},
                                  {"copy_bytes", "1 MS"},
                                  {"wall", "1 ms 2"}}) {
    const auto limit = parse(key, text);
    EXPECT_FALSE(limit) << key << " " << text;
    if (!limit) {
      EXPECT_NE(limit.error().message.find("expects"), std::string::npos);
    }
  }
}

BudgetReport check(const Trace& trace, std::vector<std::pair<const char*, const char*>> at_most,
                   std::vector<std::string> rules = {}, bool per_recording = false) {
  Budget budget;
  budget.per_recording = per_recording;
  for (const auto& [key, text] : at_most)
    budget.limits.push_back(*parse_limit(*find_measure(key), true, text));
  budget.quiet_rules = std::move(rules);
  return *check_budget(*gather_facts(trace), budget);
}

// wall 72 us, idle 12 of 72 = 16.67 %.
TEST(BudgetTest, ALimitIsKeptUpToItselfAndBrokenAbove) {
  const Trace trace = three_steps();
  EXPECT_TRUE(check(trace, {{"wall", "72 us"}, {"idle", "16.7 %"}, {"launches", "2"}}).kept());
  const BudgetReport report = check(trace, {{"wall", "71.9 us"}, {"idle", "16.6 %"}});
  EXPECT_EQ(report.broken, 2u);
  EXPECT_FALSE(report.kept());
  EXPECT_FALSE(report.lines[0].evidence.empty());
  EXPECT_EQ(report.lines[0].value, 72'000);
  EXPECT_EQ(report.lines[1].unit, "ratio");
  EXPECT_FALSE(report.lines[1].evidence.empty());
}

TEST(BudgetTest, AtLeastIsTheOtherWayRound) {
  const Trace trace = three_steps();
  Budget budget;
  budget.limits.push_back(*parse_limit(*find_measure("steps"), false, "2"));
  budget.limits.push_back(*parse_limit(*find_measure("compute"), false, "70 %"));
  const auto report = check_budget(*gather_facts(trace), budget);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->lines[0].state, BudgetState::kKept);
  EXPECT_EQ(report->lines[1].state,
            BudgetState::kBroken);  // 50 of 72 us are 69.4 %
}

TEST(BudgetTest, EveryMeasureHasEvidenceOrNothingToShow) {
  const Trace trace = three_steps();
  const Facts facts = *gather_facts(trace);
  for (const char* key : {"wall", "compute", "exposed_copy", "idle", "host_waits", "kernels",
                          "launches", "copies", "copy_bytes", "after_sync"})
    EXPECT_FALSE(measure_evidence(facts, *find_measure(key)).empty()) << key;
  for (const Measure& each : all_measures()) measure_evidence(facts, each);
}

TEST(BudgetTest, WhatTheTraceLacksIsNeverKept) {
  const Trace trace = three_steps();
  const BudgetReport memory = check(trace, {{"peak_memory", "1 TiB"}});
  EXPECT_EQ(memory.missing, 1u);
  EXPECT_FALSE(memory.kept());
  EXPECT_NE(memory.lines[0].missing.find("profile_memory=True"), std::string::npos);

  const Trace empty = testing::Sketch().trace();
  for (const Measure& each : all_measures()) {
    Budget budget;
    budget.limits.push_back({&each, true, false, 1e15, "", 0});
    if (std::string_view(each.key) == "steps") continue;  // 0 of them
    EXPECT_FALSE(check_budget(*gather_facts(empty), budget)->kept()) << each.key;
  }
}

TEST(BudgetTest, StepsAndRecordingsAreNotMixedUp) {
  ProgramSketch unmarked;
  unmarked.launch({.us = 50}).launch({.us = 50}).wait();
  const Trace trace = unmarked.trace();
  EXPECT_EQ(check(trace, {{"wall", "1 s"}}).missing, 1u);
  EXPECT_TRUE(check(trace, {{"wall", "1 s"}}, {}, true).kept());
  const Trace marked = three_steps();
  EXPECT_EQ(check(marked, {{"wall", "1 s"}}, {}, true).missing, 1u);
}

TEST(BudgetTest, ARuleThatFiresBreaksTheBudget) {
  const Trace trace = three_steps();
  const Explanation all = *run_rules(*gather_facts(trace));
  for (const RuleRun& run : all.runs) {
    const BudgetReport report = check(trace, {}, {run.id});
    ASSERT_EQ(report.lines.size(), 1u);
    // A rule that a budget names is never covered by another: it fires.
    const bool fires = run.state == RuleRun::State::kFound || run.state == RuleRun::State::kCovered;
    EXPECT_EQ(report.lines[0].state, fires                                 ? BudgetState::kBroken
                                     : run.state == RuleRun::State::kQuiet ? BudgetState::kKept
                                                                           : BudgetState::kMissing)
        << run.id;
  }
}

// The copy of 10 us is half a sixth of the step: the numbers are broken, and the cause is named.
TEST(BudgetTest, ABrokenLimitComesWithTheCauseThatExplainNames) {
  const Trace trace = three_steps();
  const BudgetReport report = check(trace, {{"exposed_copy", "1 us"}});
  ASSERT_EQ(report.broken, 1u);
  ASSERT_TRUE(report.explanation);
  ASSERT_FALSE(report.first.empty());
  EXPECT_EQ(report.explanation->findings[report.first[0].finding].rule, "pageable-copy");
  EXPECT_FALSE(report.first[0].action.pattern.empty());
  const BudgetReport kept = check(trace, {{"exposed_copy", "1 s"}});
  EXPECT_FALSE(kept.explanation);
  EXPECT_TRUE(kept.first.empty());
}

// Gains are of the step without the profiler, as explain's are: the same order, numbers and words.
TEST(BudgetTest, ABrokenLimitComesWithTheAnalysisOfExplain) {
  const Trace trace = three_steps();
  const Facts facts = *gather_facts(trace);
  const Explanation explained = *run_rules_and_gains(facts);
  ASSERT_TRUE(explained.gains);
  const std::vector<Suggestion> first = do_first(facts, explained);
  const BudgetReport report = check(trace, {{"wall", "1 us"}}, {"pageable-copy"});
  ASSERT_TRUE(report.explanation);
  ASSERT_TRUE(report.explanation->gains);
  EXPECT_EQ(report.explanation->headline.pattern, explained.headline.pattern);
  ASSERT_EQ(report.first.size(), first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(report.first[i].finding, first[i].finding);
    EXPECT_EQ(report.first[i].gain_ns, first[i].gain_ns);
    EXPECT_EQ(report.first[i].is_predicted, first[i].is_predicted);
    EXPECT_LE(report.first[i].gain_ns, explained.gains->base().step_ns);
  }
}

// Four steps keep the GPU busy; in a fifth it waits 50 ms. That step counts in the numbers, but a
// usual step is bound by the GPU, as explain says.
TEST(BudgetTest, ALongStepDoesNotMakeTheProgramHostBound) {
  ProgramSketch sketch;
  for (int i = 0; i < 6; ++i) {
    sketch.step();
    if (i == 3) sketch.pass(50'000);
    for (int k = 0; k < 10; ++k) sketch.launch({.us = 50});
    sketch.end();
  }
  const Trace trace = sketch.trace();
  const auto counted = *gather_facts(trace, {.step = {}, .count_long_step = true});
  Budget budget;
  budget.quiet_rules = {"host-bound"};
  budget.limits.push_back(*parse_limit(*find_measure("wall"), true, "1 ms"));
  const auto report = check_budget(counted, budget);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->lines[0].state, BudgetState::kBroken);  // 10.5 ms in the mean
  EXPECT_EQ(report->lines[1].state, BudgetState::kKept);
}

TEST(BudgetTest, ATraceOfWhichSomethingWasLostIsSaidToBe) {
  testing::Sketch sketch;
  sketch.kernel("gemm", 0, 1000);
  sketch.builder().stats().count(ImportIssue::kTruncatedFile);
  const Trace trace = sketch.trace();
  const BudgetReport report = check(trace, {{"kernels", "5"}}, {}, true);
  EXPECT_EQ(report.missing, 1u);
  EXPECT_EQ(report.lines[0].key, "damage");
  Budget budget;
  budget.allow_damage = budget.per_recording = true;
  budget.limits.push_back(*parse_limit(*find_measure("kernels"), true, "5"));
  EXPECT_TRUE(check_budget(*gather_facts(trace), budget)->kept());
}

TEST(WriteBudgetTest, LimitsAreWhatWasMeasuredAndTheSlack) {
  const Trace trace = three_steps();
  const auto text = write_budget(*gather_facts(trace), 0.1, "a\n[rules] \x1b");
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("a?[rules] ?"), std::string::npos);
  EXPECT_NE(text->find("\nwall = \"79.2 us\""), std::string::npos) << *text;
  EXPECT_NE(text->find("\nidle = \"19.4 %\""),
            std::string::npos);  // 16.67 % x 1.1 + 1 point
  EXPECT_NE(text->find("\nhost_waits = 2 "),
            std::string::npos);  // 1.5, rounded up
  EXPECT_NE(text->find("\nlaunches = 2 "),
            std::string::npos);  // 2.2, rounded down
  EXPECT_EQ(text->find("peak_memory"), std::string::npos);
  EXPECT_FALSE(write_budget(*gather_facts(testing::Sketch().trace()), 0.1, "x"));
}

}  // namespace
}  // namespace lanescope::explain
