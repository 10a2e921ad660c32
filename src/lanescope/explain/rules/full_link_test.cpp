#include <gtest/gtest.h>

#include "lanescope/explain/rules/drawn_hardware_test.h"

namespace lanescope::explain {
namespace {

constexpr char kLinkPeaks[] =
    R"("pcie_peak_bytes_per_second": 63000000000, "nvlink_peak_bytes_per_second": 450000000000)";

Trace draw_full_link(std::string_view link, double rate, const char* peaks = kLinkPeaks) {
  testing::ProgramSketch program = busy_program(4000);
  return with_hardware(program, {constant(link, "GB/s", rate)}, peaks);
}

TEST(FullLinkTest, PcieCarriesNearlyItsPeak) {
  const auto finding = find_by_rule(draw_full_link("PCIe read", 55), "full-link");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).text, "PCIe, from the host to the GPU");
  EXPECT_GT(finding->verdict.values.at(1).real, 0.95);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 55'000'000'000);
}

TEST(FullLinkTest, NvlinkHasAPeakOfItsOwn) {
  EXPECT_TRUE(find_by_rule(draw_full_link("NVLink send", 380), "full-link"));
  EXPECT_EQ(state_of_rule(draw_full_link("NVLink send", 55), "full-link"), RuleRun::State::kQuiet);
}

TEST(FullLinkTest, IsQuietBelowEightyPercent) {
  EXPECT_EQ(state_of_rule(draw_full_link("PCIe read", 50), "full-link"), RuleRun::State::kQuiet);
}

TEST(FullLinkTest, SaysNothingWithoutAPeak) {
  EXPECT_EQ(state_of_rule(draw_full_link("PCIe read", 55, ""), "full-link"),
            RuleRun::State::kNotChecked);
}

}  // namespace
}  // namespace lanescope::explain
