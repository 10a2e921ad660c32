// Rules about torch.compile, graphs, the training loop and cold starts on real traces: the shipped
// ones, and those of ../shared where that folder lies beside the checkout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "lanescope/explain/run_rules.h"
#include "lanescope/format/read_trace.h"

namespace lanescope::explain {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kRulesHere = {
    "unfused-chain",   "unfused-norm",    "graph-breaks",     "recompiles",
    "cold-compile",    "compile-layers",  "compile-overhead", "graph-opportunity",
    "graph-gaps",      "outside-graphs",  "collapsed-graph",  "optimizer-loop",
    "optimizer-share", "zero-grad-fills", "backward-gap",     "recompute",
    "logits-loss",     "scaler-sync",     "lazy-loading",     "first-allocations",
    "worker-restart",  "cudnn-benchmark", "triton-autotune"};

struct RealTrace {
  const char* path;
  std::set<std::string> found;  // of kRulesHere, and no other
};

void expect_found(const fs::path& path, const std::set<std::string>& expected) {
  const auto trace = format::read_trace(path);
  ASSERT_TRUE(trace) << path;
  const auto facts = gather_facts(*trace);
  ASSERT_TRUE(facts);
  const auto explanation = run_rules(*facts, {.only = kRulesHere, .off = {}});
  ASSERT_TRUE(explanation);
  std::set<std::string> found;
  for (const Finding& finding : explanation->findings) {
    found.insert(finding.rule);
    EXPECT_LE(finding.at_stake_ratio, 1.0) << path << " " << finding.rule;
    EXPECT_GE(finding.at_stake_ns, 0) << path << " " << finding.rule;
  }
  EXPECT_EQ(found, expected) << path;
}

const RealTrace kShipped[] = {
    {"torch213_graph_break/trace.json.gz",
     {"graph-breaks", "recompiles", "cold-compile", "compile-layers"}},
    {"torch213_worker_restart/trace.json.gz", {"worker-restart"}},
    {"torch213_recompile/trace.json.gz", {"recompiles", "compile-layers"}},
    {"h200_64_bf16_warm_compile/trace.json", {"compile-layers", "compile-overhead"}},
    {"h200_mlp_train/trace.json.gz", {"optimizer-share"}},
    {"h200_64_bf16_warm_eager/trace.json", {}},
    {"h200_linear_eager/trace.json.gz", {}},
};

TEST(RealCompileTracesTest, ShippedTracesShowWhatIsInThem) {
  for (const RealTrace& each : kShipped)
    expect_found(fs::path(LANESCOPE_SOURCE_DIR) / "tests/data" / each.path, each.found);
}

// What an expert reads in each of them too; the other rules stay quiet.
const RealTrace kShared[] = {
    {"h200/cnn_train_mistakes.json.gz", {"graph-opportunity", "optimizer-loop", "zero-grad-fills"}},
    {"h200/llama_prefill.json.gz", {"unfused-norm"}},
    {"h200/mlp_compile.json.gz", {"compile-layers"}},
    {"h200/mlp_cudagraph.json.gz", {"collapsed-graph", "compile-layers"}},
    {"h200/mlp_eager.json.gz", {}},
    {"ddp4/healthy/rank0.json.gz", {"unfused-chain"}},
    {"public/kineto_torch18_autogradapi_w0.pt.trace.json.gz",
     {"cudnn-benchmark", "lazy-loading", "zero-grad-fills"}},
    {"public/kineto_2020_toparray_resnet50_w4.json.gz", {"optimizer-loop", "zero-grad-fills"}},
    {"public/tracelens_sglang_decode.json.gz", {"collapsed-graph"}},
    {"public/tracelens_h100_qwen_stack_memory.json.gz", {"unfused-chain", "unfused-norm"}},
};

TEST(RealCompileTracesTest, SharedTracesShowWhatIsInThem) {
  const fs::path shared = fs::path(LANESCOPE_SOURCE_DIR) / "../shared/traces";
  if (!fs::exists(shared)) GTEST_SKIP() << "no " << shared << ": only the shipped traces were read";
  for (const RealTrace& each : kShared) expect_found(shared / each.path, each.found);
}

}  // namespace
}  // namespace lanescope::explain
