// What the reports print for the shipped traces, kept as text under tests/golden.
// tools/update_golden.py rewrites it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "lanescope/analysis/dispatch_tree.h"
#include "lanescope/analysis/key_averages.h"
#include "lanescope/analysis/trace_info.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/report/dispatch_tree_text.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/key_averages_table.h"
#include "lanescope/report/trace_info_text.h"

namespace lanescope::report {
namespace {

namespace fs = std::filesystem;
const fs::path kTests = fs::path(LANESCOPE_SOURCE_DIR) / "tests";

class GoldenTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const fs::path folder = kTests / "data" / GetParam();
    const bool packed = fs::exists(folder / "trace.json.gz");
    auto trace = format::read_trace(folder / (packed ? "trace.json.gz" : "trace.json"));
    ASSERT_TRUE(trace) << trace.error().message;
    trace_ = std::move(*trace);
  }

  static void expect_golden(const std::string& name, const std::string& text) {
    const fs::path path = kTests / "golden" / (std::string(GetParam()) + "." + name);
    if (std::getenv("LANESCOPE_UPDATE_GOLDEN")) {
      std::ofstream(path, std::ios::binary) << text;
      return;
    }
    std::ifstream in(path, std::ios::binary);
    ASSERT_TRUE(in) << "no " << path << "; tools/update_golden.py writes it";
    std::stringstream golden;
    golden << in.rdbuf();
    EXPECT_EQ(text, golden.str())
        << path << "; if the change is meant: tools/update_golden.py, and say why in the commit";
  }

  Trace trace_;
};

TEST_P(GoldenTest, LanescopeTable) {
  const auto table =
      analysis::compute_key_averages(trace_, {.style = analysis::TableStyle::kLanescope});
  ASSERT_TRUE(table);
  const TableOptions options{.sort_by = "self_device_time_total", .readable_names = true};
  expect_golden("table.txt", *key_averages_text(*table, options));
  expect_golden("table.json", *key_averages_json(*table, options));
  expect_golden("table.csv", *key_averages_csv(*table, options));
}

TEST_P(GoldenTest, Tree) {
  const auto tree = analysis::compute_dispatch_tree(trace_);
  ASSERT_TRUE(tree);
  expect_golden("tree.txt", dispatch_tree_text(*tree));
  expect_golden("tree.json", dispatch_tree_json(*tree));
}

// The memory of a Trace is the machine's business and not in the golden text.
TEST_P(GoldenTest, Info) {
  analysis::TraceInfo info = analysis::compute_trace_info(trace_);
  info.memory_bytes = 0;
  expect_golden("info.txt", trace_info_text(info));
  expect_golden("info.json", trace_info_json(info));
}

TEST_P(GoldenTest, Explain) {
  const auto facts = explain::gather_facts(trace_);
  ASSERT_TRUE(facts);
  const auto explanation = explain::run_rules(*facts);
  ASSERT_TRUE(explanation);
  expect_golden("explain.txt", explanation_text(*facts, *explanation));
  expect_golden("explain.md", explanation_text(*facts, *explanation, {.markdown = true}));
  expect_golden("explain.json", explanation_json(*facts, *explanation));
}

INSTANTIATE_TEST_SUITE_P(Shipped, GoldenTest,
                         ::testing::Values("h200_64_bf16_warm_eager", "h200_64_bf16_warm_compile",
                                           "h200_b8x64_bf16_cold_eager", "h200_linear_eager",
                                           "h200_mlp_train"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace lanescope::report
