// The rules together: order, switches, one step, and what they say of real traces.
#include "lanescope/explain/run_rules.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>

#include "lanescope/format/read_trace.h"
#include "lanescope/testing/program_sketch.h"

namespace lanescope::explain {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::Not;
using testing::ProgramSketch;

Explanation explain_all(const Facts& facts) {
  auto result = run_rules(facts);
  EXPECT_TRUE(result);
  return std::move(*result);
}

std::set<std::string> found(const Trace& trace) {
  const auto facts = gather_facts(trace);
  std::set<std::string> ids;
  const Explanation explanation = explain_all(*facts);
  for (const Finding& finding : explanation.findings) ids.insert(finding.rule);
  return ids;
}

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
                       [](const Rule* rule) { return !rule->only_by_id; });
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
  const auto facts = gather_facts(trace, 2);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->steady.size(), 1u);
  EXPECT_EQ(facts->wall.partition.wall_ns, 100'000);
  EXPECT_FALSE(gather_facts(trace, 9));
}

TEST(RunRulesTest, AnEmptyTraceAndOneWithoutAGpuAreSpokenOfHonestly) {
  const Trace empty = testing::Sketch().trace();
  EXPECT_TRUE(found(empty).empty());
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

// Each a real trace, the rules that must speak and some that must not.
struct WholeTrace {
  const char* path;
  std::vector<std::string> speak, quiet;
};
const WholeTrace kShippedTraces[] = {
    {"h200_64_bf16_warm_eager/trace.json",
     {"host-bound", "slow-first-step"},
     {"gpu-bound", "compiled-code", "final-sync", "earlier-work", "profiler-stall"}},
    {"h200_64_bf16_warm_compile/trace.json", {"host-bound", "compiled-code"}, {"exposed-copy"}},
    {"h200_b8x64_bf16_cold_eager/trace.json", {"host-bound", "slow-first-step"}, {"tiny-kernels"}},
    {"h200_linear_eager/trace.json.gz", {"host-bound"}, {"many-calls"}},
    {"h200_mlp_train/trace.json.gz",
     {"gpu-bound", "final-sync", "earlier-work"},
     {"host-bound", "host-sync", "gpu-idle", "slow-first-step", "kernel-spread",
      "allocator-calls"}},
};
const WholeTrace kSharedTraces[] = {
    {"h200/4096_bf16_warm_eager.json",
     {"gpu-bound", "hotspot-kernel", "final-sync"},
     {"host-bound", "exposed-copy", "compiled-code"}},
    {"h200/4096_bf16_warm_compile.json",
     {"gpu-bound", "copy-before-gemm", "compiled-code"},
     {"exposed-copy"}},
    {"h200/64_bf16_warm_eager_w0_0_a20.json", {"profiler-stall", "slow-first-step"}, {"lone-gap"}},
    {"h200/cnn_train_mistakes.json.gz",
     {"host-bound", "host-sync", "tiny-kernels", "pageable-copy", "dataloader-wait"},
     {"hotspot-kernel", "many-calls", "allocator-calls"}},
    {"h200/llama_decode.json.gz", {"host-bound", "tiny-kernels", "many-calls"}, {"pageable-copy"}},
    {"h200/llama_prefill.json.gz",
     {"gpu-bound"},
     {"tiny-kernels", "many-calls", "host-sync", "kernel-spread"}},
    {"h200/mlp_compile.json.gz", {"gpu-bound", "compiled-code"}, {"slow-first-step"}},
    {"h200/mlp_eager.json.gz", {"gpu-bound"}, {"compiled-code"}},
    {"ddp4/healthy/rank0.json.gz", {"gpu-bound"}, {"communication-bound", "host-sync"}},
    {"ddp4/straggler/rank0.json.gz", {"communication-bound"}, {"gpu-bound", "host-bound"}},
    {"ddp4/straggler/rank1.json.gz", {"host-bound"}, {"communication-bound"}},
    {"public/param_resnet_2080ti_112k.json.gz",
     {"dataloader-wait", "allocator-calls", "pageable-copy"},
     {"many-calls", "dead-window"}},
    {"public/kineto_torch19_stack_memory_w4.pt.trace.json.gz",
     {"gpu-idle", "pageable-copy"},
     {"host-bound", "gpu-bound", "lone-gap"}},
    {"public/kineto_2020_toparray_resnet50_w4.json.gz", {"gpu-idle", "lone-gap"}, {"host-sync"}},
    {"public/hta_v100_test_rank1of2.json.gz",
     {"exposed-copy", "earlier-work"},
     {"pageable-copy", "host-bound", "gpu-idle", "lone-gap"}},
    {"public/tracelens_mi300_ddp_resnet18.json.gz", {"allocator-calls"}, {"edge-gap"}},
    {"public/tracelens_mi300_normalization_memory.json.gz", {"dead-window"}, {"tiny-kernels"}},
    {"public/tracelens_sglang_decode.json.gz", {"gpu-bound", "edge-gap"}, {"gpu-idle"}},
    {"public/tracelens_b300_sglang_qwen3_decode.json.gz", {"gpu-idle"}, {"edge-gap"}},
    {"public/hta_compare_base.json.gz", {}, {"host-bound", "host-sync", "earlier-work"}},
    {"public/hta_triton_example_strings.json.gz", {}, {"host-bound", "gpu-idle", "gpu-bound"}},
};

void check(const fs::path& path, const WholeTrace& expected) {
  const auto trace = format::read_trace(path);
  ASSERT_TRUE(trace) << trace.error().message;
  const std::set<std::string> ids = found(*trace);
  for (const std::string& rule : expected.speak) EXPECT_THAT(ids, Contains(rule)) << path;
  for (const std::string& rule : expected.quiet) EXPECT_THAT(ids, Not(Contains(rule))) << path;
  // Whatever the trace: the parts of each step's wall add up, and so do the causes of idleness.
  const auto facts = gather_facts(*trace);
  for (const DeviceFacts& device : facts->devices)
    for (const WallTimes& wall : device.walls) {
      const auto& part = wall.partition;
      EXPECT_EQ(
          part.compute_ns + part.exposed_communication_ns + part.exposed_copy_ns + part.idle_ns,
          part.wall_ns);
      std::int64_t idle = 0;
      for (const std::int64_t each : wall.idle) idle += each;
      EXPECT_EQ(idle, part.idle_ns) << path;
    }
}

TEST(RunRulesTest, ShippedTraces) {
  for (const WholeTrace& each : kShippedTraces)
    check(fs::path(LANESCOPE_SOURCE_DIR) / "tests" / "data" / each.path, each);
}

TEST(RunRulesTest, SharedTraces) {
  const char* folder = std::getenv("LANESCOPE_SHARED_TRACES");
  const fs::path root =
      folder ? fs::path(folder) : fs::path(LANESCOPE_SOURCE_DIR) / ".." / "shared" / "traces";
  if (!fs::exists(root)) GTEST_SKIP() << "no shared traces at " << root;
  for (const WholeTrace& each : kSharedTraces) check(root / each.path, each);
}

// The same events in any order of the file give the same verdicts, numbers and evidence.
TEST(RunRulesTest, TheOrderOfEventsInTheFileDoesNotMatter) {
  struct Drawn {
    std::string category, name;
    std::int64_t start, dur;
    testing::Fields fields;
  };
  std::mt19937 random(11);
  std::vector<Drawn> events;
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
  const auto describe = [](const std::vector<Drawn>& drawn) {
    testing::Sketch sketch;
    for (const Drawn& each : drawn)
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

}  // namespace
}  // namespace lanescope::explain
