// What the reports print for the shipped traces, kept as text under tests/golden: for the trace as
// it was read, and for the same trace in a mapped file. tools/update_golden.py rewrites it.
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "lanescope/analysis/dispatch_tree.h"
#include "lanescope/analysis/key_averages.h"
#include "lanescope/analysis/trace_info.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/report/dispatch_tree_text.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/golden_helpers_test.h"
#include "lanescope/report/key_averages_table.h"
#include "lanescope/report/trace_info_text.h"
#include "lanescope/testing/mapped_trace.h"

namespace lanescope::report {
namespace {

namespace fs = std::filesystem;
const fs::path kTests = fs::path(LANESCOPE_SOURCE_DIR) / "tests";

struct GoldenCase {
  const char* folder;
  bool is_mapped;
};
void PrintTo(const GoldenCase& golden, std::ostream* out) { *out << golden.folder; }

class GoldenTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  void SetUp() override {
    const fs::path folder = kTests / "data" / GetParam().folder;
    const bool packed = fs::exists(folder / "trace.json.gz");
    auto trace = format::read_trace(folder / (packed ? "trace.json.gz" : "trace.json"));
    ASSERT_TRUE(trace) << trace.error().message;
    trace_ = std::move(*trace);
    if (GetParam().is_mapped)
      trace_ = lanescope::testing::map_trace(trace_, fs::temp_directory_path()).trace;
  }

  static void expect_golden(const std::string& name, const std::string& text) {
    report::expect_golden(std::string(GetParam().folder) + "." + name, text);
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
  expect_golden("explain.txt", without_rule_list(explanation_text(*facts, *explanation)));
  expect_golden("explain.md",
                without_rule_list(explanation_text(*facts, *explanation, {.markdown = true})));
  expect_golden("explain.json", without_rule_list(explanation_json(*facts, *explanation)));
}

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  for (const char* folder : {"h200_64_bf16_warm_eager", "h200_64_bf16_warm_compile",
                             "h200_b8x64_bf16_cold_eager", "h200_linear_eager", "h200_mlp_train"})
    for (const bool is_mapped : {false, true}) cases.push_back({folder, is_mapped});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Shipped, GoldenTest, ::testing::ValuesIn(golden_cases()),
                         [](const auto& each) {
                           return std::string(each.param.folder) +
                                  (each.param.is_mapped ? "_mapped" : "");
                         });

}  // namespace
}  // namespace lanescope::report
