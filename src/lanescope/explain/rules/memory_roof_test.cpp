#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// 3 * 4096^2 * 4 bytes in 50 us: 41.9 us at the bandwidth, 83.9 %.
TEST(MemoryRoofTest, SpeaksOfTheBandwidth) {
  const auto finding = find_in_steps("memory-roof", [](ProgramSketch& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 50);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_DOUBLE_EQ(finding->verdict.values.at(0).real, 1.0);
  EXPECT_NEAR(finding->verdict.values.at(1).real, 0.839, 0.001);
  EXPECT_EQ(finding->at_stake_ns, 50'000);
}

TEST(MemoryRoofTest, AdvisesNoSmallerTypeThanTheOneInUse) {
  const auto advice = [](const char* types, std::int64_t us) {
    const auto finding = find_in_steps("memory-roof", [&](ProgramSketch& p) {
      p.op("aten::add", shapes(kSquare, types), "add_kernel", us);
    });
    EXPECT_TRUE(finding);
    return finding ? finding->try_next.at(1) : std::string();
  };
  EXPECT_EQ(advice(kFloat, 50), "move fewer bytes: bf16 instead of float32, smaller activations");
  EXPECT_EQ(advice(kBf16, 25), "move fewer bytes: smaller activations");
}

TEST(MemoryRoofTest, IsQuietAboutMatmulsAndSlowPasses) {
  EXPECT_FALSE(find_in_steps("memory-roof", [](ProgramSketch& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 50);
    p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 169);
  }));
  EXPECT_FALSE(find_in_steps("memory-roof", [](ProgramSketch& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 80);
  }));
  EXPECT_EQ(
      state_in_steps(
          "memory-roof",
          [](ProgramSketch& p) { p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 50); },
          ""),
      RuleRun::State::kNotChecked);
}

}  // namespace
}  // namespace lanescope::explain
