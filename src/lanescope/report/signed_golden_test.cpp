// What explain prints for real traces: seven of this repository; and ten public ones, as read in full
// and signed in docs/measurements/explain_reading.md, whose tests are skipped where they are missing
// (testing/real_traces.h). Whoever rewrites a text with tools/update_golden.py reads the difference
// and says in the commit what was checked.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "lanescope/format/read_trace.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/golden_helpers_test.h"
#include "lanescope/testing/real_traces.h"

namespace lanescope::report {
namespace {

namespace fs = std::filesystem;

struct Signed {
  const char *name, *file;
};

void expect_as_signed(const fs::path& file, const std::string& golden) {
  const auto trace = format::read_trace(file);
  ASSERT_TRUE(trace) << trace.error().message;
  const auto facts = explain::gather_facts(*trace);
  ASSERT_TRUE(facts);
  const auto explanation = explain::run_rules(*facts);
  ASSERT_TRUE(explanation);
  expect_golden(golden, without_rule_list(explanation_text(*facts, *explanation)));
}

class OwnGoldenTest : public ::testing::TestWithParam<Signed> {};

TEST_P(OwnGoldenTest, ExplainIsAsSigned) {
  expect_as_signed(testing::shipped_traces() / GetParam().file,
                   "own/" + std::string(GetParam().name) + ".explain.txt");
}

INSTANTIATE_TEST_SUITE_P(
    Signed, OwnGoldenTest,
    ::testing::Values(Signed{"h200_cnn_with_mistakes", "h200/cnn_train_mistakes.json.gz"},
                      Signed{"h200_llama_prefill", "h200/llama_prefill.json.gz"},
                      Signed{"h200_mlp_cuda_graph", "h200/mlp_cudagraph.json.gz"},
                      Signed{"h200_ddp_healthy", "ddp4/healthy/rank0.json.gz"},
                      Signed{"h200_ddp_waits_for_rank_1", "ddp4/straggler/rank0.json.gz"},
                      Signed{"h200_ddp_sleeps", "ddp4/straggler/rank1.json.gz"},
                      Signed{"cpu_graph_break", "torch213_graph_break/trace.json.gz"}),
    [](const auto& each) { return std::string(each.param.name); });

class PublicGoldenTest : public ::testing::TestWithParam<Signed> {};

TEST_P(PublicGoldenTest, ExplainIsAsSigned) {
  LANESCOPE_NEEDS_SHARED_TRACES("OwnGoldenTest");
  expect_as_signed(testing::shared_traces() / "public" / GetParam().file,
                   "public/" + std::string(GetParam().name) + ".explain.txt");
}

INSTANTIATE_TEST_SUITE_P(
    Signed, PublicGoldenTest,
    ::testing::Values(Signed{"a100_ddp_training", "hta_a100_nccl_args_rank0of2.json.gz"},
                      Signed{"v100_recommender_graphs", "hta_v100_test_rank1of2.json.gz"},
                      Signed{"resnet50_torch19", "kineto_torch19_stack_memory_w4.pt.trace.json.gz"},
                      Signed{"resnet_2080ti", "param_resnet_2080ti_112k.json.gz"},
                      Signed{"h100_qwen_prefill", "tracelens_h100_qwen_stack_memory.json.gz"},
                      Signed{"h100_bert_small", "tracelens_h100_bert_small.json.gz"},
                      Signed{"mi300_flux_compile", "tracelens_mi300_xdit_flux_229k.json.gz"},
                      Signed{"mi300_resnet18_no_cache", "tracelens_mi300_ddp_resnet18.json.gz"},
                      Signed{"mi300_sglang_decode", "tracelens_sglang_decode.json.gz"},
                      Signed{"multi_stream_nan", "odd_nan_occupancy.json"}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace lanescope::report
