// What the rules about single kernels say of real traces: each firing was read by hand in the
// trace, and nothing else fires there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "lanescope/explain/run_rules.h"
#include "lanescope/format/read_trace.h"

namespace lanescope::explain {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kTraceRules[] = {"copy-before-gemm", "fp32-matmul",   "half-off-tensor-cores",
                                       "unaligned-dims",   "slow-gemm",     "slow-attention",
                                       "same-flops",       "wave-tail",     "few-blocks",
                                       "low-occupancy",    "memory-roof",   "no-roof",
                                       "conv-layout",      "layout-copies", "conv-bias",
                                       "math-attention",   "split-k"};

class KernelTracesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("LANESCOPE_SHARED_TRACES");
    root_ = folder ? fs::path(folder) : fs::path(LANESCOPE_SOURCE_DIR) / ".." / "shared" / "traces";
    if (!fs::exists(root_)) GTEST_SKIP() << "LOUD SKIP: no shared traces at " << root_;
  }

  // "rule: time at stake in ns" of those that fire, in the order of the list.
  std::vector<std::string> fired(const std::string& path) {
    const auto read = format::read_trace(root_ / path);
    if (!read) {
      ADD_FAILURE() << path;
      return {};
    }
    const auto facts = gather_facts(*read);
    std::vector<std::string> all;
    for (const char* rule : kTraceRules) {
      const auto explanation = run_rules(*facts, {.only = {rule}, .off = {}});
      for (const Finding& finding : explanation->findings)
        all.push_back(finding.rule + ": " + std::to_string(finding.at_stake_ns));
    }
    return all;
  }

 private:
  fs::path root_;
};

// x @ w + m, compiled to an addmm with a matrix to add: 32 MB before each of two matmuls.
TEST_F(KernelTracesTest, ACompiledMatmulAdd) {
  EXPECT_THAT(
      fired("h200/4096_bf16_warm_compile.json"),
      ElementsAre("copy-before-gemm: 31200"));  // the copy, and as much for reading it again
  EXPECT_THAT(fired("h200/4096_bf16_warm_eager.json"), IsEmpty());
}

// A net with biased convolutions before batch norm, channels first, 64 channels.
TEST_F(KernelTracesTest, AConvolutionalNetWithMistakes) {
  EXPECT_THAT(fired("h200/cnn_train_mistakes.json.gz"),
              ElementsAre("few-blocks: 1629945", "conv-layout: 1171635", "conv-bias: 548875"));
}

TEST_F(KernelTracesTest, HealthyLoops) {
  for (const char* path : {"h200/mlp_train.json.gz", "h200/mlp_eager.json.gz",
                           "h200/4096_bf16_warm_eager_w0_0_a20.json", "ddp4/healthy/rank0.json.gz",
                           "ddp4/straggler/rank1.json.gz"})
    EXPECT_THAT(fired(path), IsEmpty()) << path;
}

// Decoding: matmuls of a few rows, split over k.
TEST_F(KernelTracesTest, Decoding) {
  EXPECT_THAT(fired("h200/llama_decode.json.gz"), ElementsAre("split-k: 0"));
}

TEST_F(KernelTracesTest, OtherPeoplesTraces) {
  EXPECT_THAT(fired("public/hta_v100_test_rank1of2.json.gz"), ElementsAre("fp32-matmul: 28613025"));
  EXPECT_THAT(fired("public/tracelens_h100_qwen_stack_memory.json.gz"),
              ElementsAre("layout-copies: 2766267"));
  EXPECT_THAT(fired("public/tracelens_sglang_prefilldecode.json.gz"),
              ElementsAre("slow-gemm: 159559243"));
}

}  // namespace
}  // namespace lanescope::explain
