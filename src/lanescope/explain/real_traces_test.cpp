// What rules find in real traces. Each finding was read by hand in the trace; no others may appear.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/testing/real_traces.h"

namespace lanescope::explain {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

std::set<std::string> found(const Facts& facts) {
  const auto explanation = run_rules(facts);
  EXPECT_TRUE(explanation);
  std::set<std::string> ids;
  for (const Finding& finding : explanation->findings) ids.insert(finding.rule);
  return ids;
}

// Each a real trace, the rules that must fire and some that must not.
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
    {"h100_backward/custom_function.json.gz", {"slow-backward"}, {}},
    {"h100_backward/rows_one_by_one.json.gz", {"slow-backward"}, {}},
    {"h100_backward/clamp.json.gz", {"gpu-bound"}, {"slow-backward"}},
    {"h100_backward/rows_together.json.gz", {"gpu-bound"}, {"slow-backward"}},
    {"h200_mlp_train/trace.json.gz",
     {"gpu-bound", "final-sync", "earlier-work"},
     {"host-bound", "host-sync", "gpu-idle", "slow-first-step", "kernel-spread",
      "allocator-calls"}},
    {"h200/4096_bf16_warm_eager.json.gz",
     {"gpu-bound", "hotspot-kernel", "final-sync"},
     {"host-bound", "exposed-copy", "compiled-code"}},
    {"h200/4096_bf16_warm_compile.json.gz",
     {"gpu-bound", "copy-before-gemm", "compiled-code"},
     {"exposed-copy"}},
    {"h200/64_bf16_warm_eager_w0_0_a20.json.gz",
     {"start-up-lag"},
     {"lone-gap", "profiler-stall", "slow-first-step"}},
    {"h200/cnn_train_mistakes.json.gz",
     {"host-bound", "host-sync", "tiny-kernels", "pageable-copy", "dataloader-wait"},
     {"hotspot-kernel", "many-calls", "allocator-calls"}},
    {"h200/llama_prefill.json.gz",
     {"gpu-bound"},
     {"tiny-kernels", "many-calls", "host-sync", "kernel-spread"}},
    {"h200/mlp_compile.json.gz", {"gpu-bound", "compiled-code"}, {"slow-first-step"}},
    {"h200/mlp_eager.json.gz", {"gpu-bound"}, {"compiled-code"}},
    {"ddp4/healthy/rank0.json.gz", {"gpu-bound"}, {"communication-bound", "host-sync"}},
    {"ddp4/straggler/rank0.json.gz", {"communication-bound"}, {"gpu-bound", "host-bound"}},
    {"ddp4/straggler/rank1.json.gz", {"host-bound"}, {"communication-bound"}},
};
const WholeTrace kSharedTraces[] = {
    {"h200/llama_decode.json.gz", {"host-bound", "tiny-kernels", "many-calls"}, {"pageable-copy"}},
    {"public/param_resnet_2080ti_112k.json.gz",
     {"dataloader-wait", "slow-first-step", "pageable-copy"},
     {"allocator-calls", "many-calls", "dead-window"}},
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
  const auto facts = gather_facts(*trace);
  ASSERT_TRUE(facts) << path;
  const std::set<std::string> ids = found(*facts);
  for (const std::string& rule : expected.speak) EXPECT_THAT(ids, Contains(rule)) << path;
  for (const std::string& rule : expected.quiet) EXPECT_THAT(ids, Not(Contains(rule))) << path;
  // Whatever the trace: the parts of each step's wall add up, and so do the causes of idleness.
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

TEST(RealTracesTest, ShippedTraces) {
  for (const WholeTrace& each : kShippedTraces) check(testing::shipped_traces() / each.path, each);
}

TEST(RealTracesTest, SharedTraces) {
  LANESCOPE_NEEDS_SHARED_TRACES("ShippedTraces");
  for (const WholeTrace& each : kSharedTraces) check(testing::shared_traces() / each.path, each);
}

// --- torch.compile, graphs, the training loop and cold starts

const std::vector<std::string> kLoopRules = {
    "unfused-chain",   "unfused-norm",    "graph-breaks",     "recompiles",
    "cold-compile",    "compile-layers",  "compile-overhead", "graph-opportunity",
    "graph-gaps",      "outside-graphs",  "collapsed-graph",  "optimizer-loop",
    "optimizer-share", "zero-grad-fills", "backward-gap",     "recompute",
    "logits-loss",     "scaler-sync",     "lazy-loading",     "first-allocations",
    "worker-restart",  "cudnn-benchmark", "triton-autotune"};

struct RealTrace {
  const char* path;
  std::set<std::string> found;  // of kLoopRules, and no other
};

void expect_found(const fs::path& path, const std::set<std::string>& expected) {
  const auto trace = format::read_trace(path);
  ASSERT_TRUE(trace) << path;
  const auto facts = gather_facts(*trace);
  ASSERT_TRUE(facts);
  const auto explanation = run_rules(*facts, {.only = kLoopRules, .off = {}});
  ASSERT_TRUE(explanation);
  std::set<std::string> spoke;
  for (const Finding& finding : explanation->findings) {
    spoke.insert(finding.rule);
    EXPECT_LE(finding.at_stake_ratio, 1.0) << path << " " << finding.rule;
    EXPECT_GE(finding.at_stake_ns, 0) << path << " " << finding.rule;
  }
  EXPECT_EQ(spoke, expected) << path;
}

// What an expert reads in each of them too; the other rules stay quiet.
const RealTrace kShipped[] = {
    {"torch213_graph_break/trace.json.gz",
     {"graph-breaks", "recompiles", "cold-compile", "compile-layers"}},
    {"torch213_worker_restart/trace.json.gz", {"worker-restart"}},
    {"torch213_recompile/trace.json.gz", {"recompiles", "compile-layers"}},
    {"h200_64_bf16_warm_compile/trace.json", {"compile-layers", "compile-overhead"}},
    {"h200_mlp_train/trace.json.gz", {"optimizer-share"}},
    {"h200_64_bf16_warm_eager/trace.json", {}},
    {"h200_linear_eager/trace.json.gz", {}},
    {"h200/cnn_train_mistakes.json.gz", {"graph-opportunity", "optimizer-loop", "zero-grad-fills"}},
    {"h200/llama_prefill.json.gz", {"unfused-chain", "unfused-norm"}},
    {"h200/mlp_compile.json.gz", {"compile-layers"}},
    {"h200/mlp_cudagraph.json.gz", {"collapsed-graph", "compile-layers"}},
    {"h200/mlp_eager.json.gz", {}},
    {"ddp4/healthy/rank0.json.gz", {}},
};

TEST(RealCompileTracesTest, ShippedTracesShowWhatIsInThem) {
  for (const RealTrace& each : kShipped)
    expect_found(testing::shipped_traces() / each.path, each.found);
}

const RealTrace kShared[] = {
    {"public/kineto_torch18_autogradapi_w0.pt.trace.json.gz",
     {"cudnn-benchmark", "first-allocations", "lazy-loading", "zero-grad-fills"}},
    {"public/kineto_2020_toparray_resnet50_w4.json.gz", {"optimizer-loop", "zero-grad-fills"}},
    {"public/tracelens_sglang_decode.json.gz", {"collapsed-graph"}},
    {"public/tracelens_h100_qwen_stack_memory.json.gz", {"unfused-chain", "unfused-norm"}},
};

TEST(RealCompileTracesTest, SharedTracesShowWhatIsInThem) {
  LANESCOPE_NEEDS_SHARED_TRACES("ShippedTracesShowWhatIsInThem");
  for (const RealTrace& each : kShared)
    expect_found(testing::shared_traces() / each.path, each.found);
}

// --- single kernels

const std::vector<std::string> kTraceRules = {
    "copy-before-gemm", "fp32-matmul",   "half-off-tensor-cores",
    "unaligned-dims",   "slow-gemm",     "slow-attention",
    "same-flops",       "wave-tail",     "few-blocks",
    "low-occupancy",    "memory-roof",   "no-roof",
    "conv-layout",      "layout-copies", "conv-bias",
    "math-attention",   "split-k"};

// "rule: time at stake in ns" of those that fire, in the order of the list.
std::vector<std::string> fired(const fs::path& path) {
  const auto read = format::read_trace(path);
  if (!read) {
    ADD_FAILURE() << path;
    return {};
  }
  const auto facts = gather_facts(*read);
  const auto explanation = run_rules(*facts, {.only = kTraceRules, .off = {}});
  std::vector<std::string> all;
  for (const std::string& rule : kTraceRules)
    for (const Finding& finding : explanation->findings)
      if (finding.rule == rule)
        all.push_back(finding.rule + ": " + std::to_string(finding.at_stake_ns));
  return all;
}

// x @ w + m, compiled to an addmm with a matrix to add: 32 MB before each of two matmuls.
TEST(KernelTracesTest, ACompiledMatmulAdd) {
  EXPECT_THAT(
      fired(testing::shipped_traces() / "h200/4096_bf16_warm_compile.json.gz"),
      ElementsAre("copy-before-gemm: 31200"));  // the copy, and as much for reading it again
  EXPECT_THAT(fired(testing::shipped_traces() / "h200/4096_bf16_warm_eager.json.gz"), IsEmpty());
}

// A net with biased convolutions before batch norm, channels first, 64 channels.
TEST(KernelTracesTest, AConvolutionalNetWithMistakes) {
  EXPECT_THAT(fired(testing::shipped_traces() / "h200/cnn_train_mistakes.json.gz"),
              ElementsAre("few-blocks: 1629945", "conv-layout: 1171635", "conv-bias: 548875"));
}

TEST(KernelTracesTest, HealthyLoops) {
  for (const char* path : {"h200_mlp_train/trace.json.gz", "h200/mlp_eager.json.gz",
                           "h200/4096_bf16_warm_eager_w0_0_a20.json.gz",
                           "ddp4/healthy/rank0.json.gz", "ddp4/straggler/rank1.json.gz"})
    EXPECT_THAT(fired(testing::shipped_traces() / path), IsEmpty()) << path;
}

// Decoding: matmuls of a few rows, split over k.
TEST(KernelTracesTest, Decoding) {
  LANESCOPE_NEEDS_SHARED_TRACES("SplitKTest");
  EXPECT_THAT(fired(testing::shared_traces() / "h200/llama_decode.json.gz"),
              ElementsAre("split-k: 0"));
}

TEST(KernelTracesTest, OtherPeoplesTraces) {
  LANESCOPE_NEEDS_SHARED_TRACES("Fp32MatmulTest, LayoutCopiesTest, SlowGemmTest");
  EXPECT_THAT(fired(testing::shared_traces() / "public/hta_v100_test_rank1of2.json.gz"),
              ElementsAre("fp32-matmul: 28613025"));
  EXPECT_THAT(fired(testing::shared_traces() / "public/tracelens_h100_qwen_stack_memory.json.gz"),
              ElementsAre("layout-copies: 2766267"));
  EXPECT_THAT(fired(testing::shared_traces() / "public/tracelens_sglang_prefilldecode.json.gz"),
              ElementsAre("slow-gemm: 159559243"));
}

// --- communication, and the recording itself

void expect_only_slowed_compute(const fs::path& path, bool is_reported) {
  const auto trace = format::read_trace(path);
  ASSERT_TRUE(trace) << path;
  for (const char* rule : {"small-collectives", "serial-communication", "first-collective",
                           "micro-step-sync", "collective-keys"})
    EXPECT_FALSE(find_by_rule(*trace, rule)) << path << " " << rule;
  EXPECT_EQ(find_by_rule(*trace, "slowed-compute").has_value(), is_reported) << path;
}

TEST(CollectivesOfRealTracesTest, Shipped) {
  for (const char* path : {"ddp4/healthy/rank0.json.gz", "ddp4/straggler/rank3.json.gz"})
    expect_only_slowed_compute(testing::shipped_traces() / path, true);
}

TEST(CollectivesOfRealTracesTest, Shared) {
  LANESCOPE_NEEDS_SHARED_TRACES("Shipped");
  expect_only_slowed_compute(
      testing::shared_traces() / "public/hta_a100_nccl_args_rank0of2.json.gz", false);
}

void expect_speaks(const fs::path& path, const std::string& rule, bool is_reported) {
  const auto trace = format::read_trace(path);
  ASSERT_TRUE(trace) << path;
  EXPECT_EQ(find_by_rule(*trace, rule).has_value(), is_reported) << path << " " << rule;
}

void expect_none_speaks(const fs::path& path, const std::vector<std::string>& rules) {
  const auto trace = format::read_trace(path);
  ASSERT_TRUE(trace) << path;
  const auto explanation = run_rules(*gather_facts(*trace), {.only = rules, .off = {}});
  ASSERT_TRUE(explanation);
  EXPECT_EQ(explanation->runs.size(), rules.size());
  for (const Finding& finding : explanation->findings) ADD_FAILURE() << path << " " << finding.rule;
}

const std::vector<std::string> kTrustRules = {
    "no-gpu-work", "clock-offset",  "lost-events",  "damaged-file",         "slow-launches",
    "full-queue",  "memory-growth", "memory-limit", "memory-fragmentation", "memory-peak"};

TEST(TrustOfRealTracesTest, Shipped) {
  const fs::path root = testing::shipped_traces();
  expect_speaks(root / "h200_mlp_train/trace.json.gz", "cpu-ahead", true);
  expect_speaks(root / "h200_mlp_train/trace.json.gz", "few-steps", false);
  expect_speaks(root / "h200_64_bf16_warm_eager/trace.json", "few-steps", true);
  expect_speaks(root / "h200_64_bf16_warm_eager/trace.json", "cpu-ahead", false);
  expect_speaks(root / "h200/64_bf16_warm_eager_w0_0_a20.json.gz", "start-up-lag", true);
  expect_speaks(root / "h200/llama_prefill.json.gz", "start-up-lag", false);
  expect_speaks(root / "h200/llama_prefill.json.gz", "stack-cost", false);
  for (const char* healthy : {"h200/mlp_cudagraph.json.gz", "ddp4/healthy/rank0.json.gz"})
    expect_none_speaks(root / healthy, kTrustRules);
}

TEST(TrustOfRealTracesTest, Shared) {
  LANESCOPE_NEEDS_SHARED_TRACES("Shipped, StackCostTest, DamagedFileTest");
  const fs::path root = testing::shared_traces();
  expect_speaks(root / "h200/llama_decode.json.gz", "start-up-lag", false);
  expect_speaks(root / "h200/llama_decode_stack.json.gz", "stack-cost", true);
  expect_speaks(root / "h200/llama_decode.json.gz", "stack-cost", false);
  expect_speaks(root / "public/odd_truncated_mid_event.json", "damaged-file", true);
  expect_speaks(root / "public/odd_trailing_comma.json", "damaged-file", false);
  // Orphans at the start, memsets without a record, programs of the CPU, other vendors.
  for (const char* healthy :
       {"public/hta_v100_test_rank1of2.json.gz", "public/tracelens_h100_bert_small.json.gz",
        "public/param_resnet_2080ti_112k.json.gz", "public/hta_mtia_inference.json.gz",
        "public/hta_cpu_only_gloo_small.pt.trace.json.gz",
        "public/tracelens_mi300_qwen_stack_memory.json.gz",
        "public/kineto_torch19_stack_memory_w4.pt.trace.json.gz"})
    expect_none_speaks(root / healthy, kTrustRules);
}

}  // namespace
}  // namespace lanescope::explain
