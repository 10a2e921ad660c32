// What explain prints for ten public traces, as read in full and signed in
// docs/measurements/explain_reading.md. The traces lie outside of the repository (../shared, or
// LANESCOPE_SHARED_TRACES): without them the test is skipped. tools/update_golden.py rewrites the
// texts; whoever does reads the difference and says in the commit what was checked.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "lanescope/format/read_trace.h"
#include "lanescope/report/explain_text.h"

namespace lanescope::report {
namespace {

namespace fs = std::filesystem;

struct Public {
  const char *name, *file;
};

class PublicGoldenTest : public ::testing::TestWithParam<Public> {};

TEST_P(PublicGoldenTest, ExplainIsAsSigned) {
  const char* folder = std::getenv("LANESCOPE_SHARED_TRACES");
  const fs::path root =
      folder ? fs::path(folder) : fs::path(LANESCOPE_SOURCE_DIR) / ".." / "shared" / "traces";
  const fs::path file = root / "public" / GetParam().file;
  if (!fs::exists(file)) GTEST_SKIP() << "no shared trace at " << file;
  const auto trace = format::read_trace(file);
  ASSERT_TRUE(trace) << trace.error().message;
  const auto facts = explain::gather_facts(*trace);
  ASSERT_TRUE(facts);
  const auto explanation = explain::run_rules(*facts);
  ASSERT_TRUE(explanation);
  // Without the list of all rules at the end, which every new rule changes.
  std::string text = explanation_text(*facts, *explanation);
  text.resize(std::min(text.size(), text.find("\nWhat else was checked\n")));
  const fs::path path = fs::path(LANESCOPE_SOURCE_DIR) / "tests" / "golden" / "public" /
                        (std::string(GetParam().name) + ".explain.txt");
  if (std::getenv("LANESCOPE_UPDATE_GOLDEN")) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream in(path, std::ios::binary);
  ASSERT_TRUE(in) << "no " << path << "; tools/update_golden.py writes it";
  std::stringstream golden;
  golden << in.rdbuf();
  EXPECT_EQ(text, golden.str())
      << path << "; if the change is meant: tools/update_golden.py, read it, say what was checked";
}

INSTANTIATE_TEST_SUITE_P(
    Signed, PublicGoldenTest,
    ::testing::Values(Public{"a100_ddp_training", "hta_a100_nccl_args_rank0of2.json.gz"},
                      Public{"v100_recommender_graphs", "hta_v100_test_rank1of2.json.gz"},
                      Public{"resnet50_torch19", "kineto_torch19_stack_memory_w4.pt.trace.json.gz"},
                      Public{"resnet_2080ti", "param_resnet_2080ti_112k.json.gz"},
                      Public{"h100_qwen_prefill", "tracelens_h100_qwen_stack_memory.json.gz"},
                      Public{"h100_bert_small", "tracelens_h100_bert_small.json.gz"},
                      Public{"mi300_flux_compile", "tracelens_mi300_xdit_flux_229k.json.gz"},
                      Public{"mi300_resnet18_no_cache", "tracelens_mi300_ddp_resnet18.json.gz"},
                      Public{"mi300_sglang_decode", "tracelens_sglang_decode.json.gz"},
                      Public{"multi_stream_nan", "odd_nan_occupancy.json"}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace lanescope::report
