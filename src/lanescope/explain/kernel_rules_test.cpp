// What the rules about single kernels have in common.
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::grid;
using testing::ProgramSketch;

constexpr const char* kKernelRules[] = {
    "copy-before-gemm", "fp32-matmul",    "half-off-tensor-cores",
    "unaligned-dims",   "slow-gemm",      "slow-attention",
    "same-flops",       "wave-tail",      "few-blocks",
    "low-occupancy",    "memory-roof",    "no-roof",
    "layout-copies",    "conv-layout",    "conv-bias",
    "math-attention",   "matmul-chain",   "split-k",
    "occupancy-query",  "operator-copies"};

TEST(KernelRulesTest, AreNotCheckedWithoutAGpu) {
  testing::Sketch sketch;
  sketch.op("aten::mm", 0, 1000);
  const Trace trace = sketch.trace();
  for (const char* rule : kKernelRules)
    EXPECT_EQ(state_of_rule(trace, rule), RuleRun::State::kNotChecked) << rule;
}

// Arguments of any text, on a GPU that describes itself badly.
TEST(KernelRulesTest, SurviveHostileArguments) {
  for (const char* text : {"", "[", "[[[[", "[[-1, 0], [0, 0]]", "[[1e400], [\"x\"]]", "{}", "null",
                           "[[9223372036854775807, 9223372036854775807], [2, 2]]"}) {
    const auto body = [&](ProgramSketch& p) {
      for (const char* op : {"aten::mm", "aten::addmm", "aten::copy_", "aten::conv2d",
                             "aten::batch_norm", "aten::convolution_backward"}) {
        Fields inputs = shapes(text, text, text);
        inputs.concrete_inputs = text;
        Fields launch{.grid = text, .block = text, .registers = -7, .shared_bytes = -1};
        p.op(op, inputs, "ampere_sgemm_128x64_nn", 100, launch);
      }
    };
    const Trace trace =
        draw_steps(body, R"([{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0,
                              "numSms": 9223372036854775807, "warpSize": 0}])");
    for (const char* rule : kKernelRules) (void)find_by_rule(trace, rule);
  }
}

}  // namespace
}  // namespace lanescope::explain
