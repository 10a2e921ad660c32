// Every kernel of every real trace: what share of GPU time gets a name.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lanescope/analysis/kernel_name_totals.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/report/kernel_name_text.h"
#include "lanescope/testing/real_traces.h"

namespace lanescope::report {
namespace {

namespace fs = std::filesystem;

// Prints the share of each trace under `root` and expects 99 % of all GPU time to be named.
void expect_named(const fs::path& root, std::size_t at_least) {
  std::int64_t total_ns = 0, named_ns = 0;
  std::size_t traces = 0;
  for (const fs::path& path : testing::json_traces(root)) {
    const auto trace = format::read_trace(path);
    if (!trace) continue;  // damaged on purpose, or no trace
    const auto totals = analysis::compute_kernel_name_totals(*trace);
    if (totals.total_ns == 0) continue;
    ++traces;
    total_ns += totals.total_ns;
    named_ns += totals.named_ns;
    const double share =
        100.0 * static_cast<double>(totals.named_ns) / static_cast<double>(totals.total_ns);
    fmt::print("{:7.2f} % of {:>10.3f} ms  {}\n", share, static_cast<double>(totals.total_ns) / 1e6,
               fs::relative(path, root).string());
    for (const auto& row : totals.rows) {
      EXPECT_LE(row.name.text.size(), names::kLongestText);
      EXPECT_FALSE(row.name.text.empty()) << trace->text(row.raw);
    }
  }
  const double share = 100.0 * static_cast<double>(named_ns) / static_cast<double>(total_ns);
  fmt::print("{:7.2f} % of GPU time named in {} traces\n", share, traces);
  EXPECT_GE(traces, at_least);
  EXPECT_GE(share, 99.0);  // measured 99.98
}

TEST(KernelNameTracesTest, NearlyAllGpuTimeOfShippedTracesIsNamed) {
  expect_named(testing::shipped_traces(), 100);
}

TEST(KernelNameTracesTest, NearlyAllGpuTimeOfRealTracesIsNamed) {
  LANESCOPE_NEEDS_SHARED_TRACES("NearlyAllGpuTimeOfShippedTracesIsNamed");
  expect_named(testing::shared_traces(), 40);
}

TEST(KernelNameTextTest, FieldsAndTheShareThatWasNamedArePrinted) {
  EXPECT_EQ(kernel_name_text(names::parse_kernel_name("volta_sgemm_64x64_nt")),
            "GEMM f32 64x64 nt (cuBLAS, Volta)\n"
            "  library          cuBLAS\n"
            "  kind             gemm\n"
            "  operation        GEMM\n"
            "  architecture     volta\n"
            "  input_type       f32\n"
            "  accumulate_type  f32\n"
            "  output_type      f32\n"
            "  tile             64x64\n"
            "  layout           nt\n");
  EXPECT_EQ(kernel_name_text(names::parse_kernel_name("a\x1b[2Jb")), "a?[2Jb\n  unknown\n");
}

}  // namespace
}  // namespace lanescope::report
