// The torch style against torch's own texts: every trace that has one next to it, byte for byte.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "lanescope/analysis/key_averages.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/report/key_averages_table.h"
#include "lanescope/testing/real_traces.h"

namespace lanescope::report {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string torch_table(const fs::path& path) {
  const auto trace = format::read_trace(path);
  EXPECT_TRUE(trace) << path << ": " << (trace ? "" : trace.error().message);
  if (!trace) return "";
  const auto table =
      analysis::compute_key_averages(*trace, {.style = analysis::TableStyle::kTorch});
  EXPECT_TRUE(table);
  return *key_averages_text(*table, {.sort_by = "cuda_time_total", .row_limit = 15});
}

// Compares each NAME.txt of a folder with the trace next to it; how many there were.
int compare_texts(const fs::path& folder) {
  int compared = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".txt") continue;
    fs::path trace = fs::path(entry.path()).replace_extension(".json");
    if (!fs::exists(trace)) trace += ".gz";
    EXPECT_EQ(torch_table(trace), text_of(entry.path())) << trace;
    ++compared;
  }
  return compared;
}

TEST(TorchTableFilesTest, EachShippedTraceGivesTorchsOwnText) {
  int compared = 0;
  for (const auto& entry : fs::directory_iterator(testing::shipped_traces())) {
    if (!fs::exists(entry.path() / "torch_table.txt")) continue;
    const bool packed = fs::exists(entry.path() / "trace.json.gz");
    EXPECT_EQ(torch_table(entry.path() / (packed ? "trace.json.gz" : "trace.json")),
              text_of(entry.path() / "torch_table.txt"))
        << entry.path();
    ++compared;
  }
  EXPECT_GE(compared, 5);
  EXPECT_GE(compare_texts(testing::shipped_traces() / "h200"), 13);
}

// llama_decode holds the cell that earlier re-implementations missed by 2 us: ProfilerStep*'s "CUDA
// total". A CUPTI "Buffer Flush" row begins inside aten::mean and ends after it. It claims the
// kernel of aten::mean, which is open at its start, but lies in ProfilerStep#1, which alone
// contains it whole: so that kernel counts twice there.
TEST(TorchTableFilesTest, EachTraceOfTheSharedFolderGivesTorchsOwnText) {
  LANESCOPE_NEEDS_SHARED_TRACES("EachShippedTraceGivesTorchsOwnText");
  EXPECT_GE(compare_texts(testing::shared_traces() / "h200"), 20);
}

}  // namespace
}  // namespace lanescope::report
