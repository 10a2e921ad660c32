#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_copies_test.h"

namespace lanescope::explain {
namespace {

TEST(ExposedCopyTest, NamesTheCopyThatAddmmMakes) {
  const auto finding = find_by_rule(
      with_copy("Memcpy DtoD (Device -> Device)", 7, "aten::addmm").trace(), "exposed-copy");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 20'000);
  EXPECT_THAT(finding->arithmetic.at(0).pattern, ::testing::HasSubstr("aten::addmm"));
}

// A pageable copy must be pinned first; a pinned one only has to begin earlier.
TEST(ExposedCopyTest, AdvisesPinningOnlyWhereItIsMissing) {
  const auto action = [](std::string_view name) {
    const auto finding = find_by_rule(with_copy(name, 7, "aten::copy_").trace(), "exposed-copy");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action("Memcpy HtoD (Pageable -> Device)"), ::testing::HasSubstr("pin_memory=True"));
  EXPECT_THAT(action("Memcpy HtoD (Pinned -> Device)"), ::testing::HasSubstr("a step ahead"));
  EXPECT_THAT(action("Memcpy HtoD (Pinned -> Device)"),
              ::testing::Not(::testing::HasSubstr("pin_memory")));
}

// 100 us of it before each copy of 80 us; or a view of what is pinned already.
TEST(ExposedCopyTest, SaysWhenTheStepItselfPinsTheMemory) {
  const auto finding_after = [](std::int64_t pinning_us) {
    testing::ProgramSketch program;
    program.steps(4, [&](testing::ProgramSketch& p) {
      p.cpu_op("aten::pin_memory", pinning_us);
      p.begin_op("aten::copy_").copy(80, 80'000, "Memcpy HtoD (Pinned -> Device)").end();
      p.kernel("gemm", 100);
    });
    return find_by_rule(program.trace(), "exposed-copy");
  };
  const auto pins = finding_after(100);
  ASSERT_TRUE(pins);
  EXPECT_THAT(pins->brief.pattern, ::testing::HasSubstr("aten::pin_memory takes"));
  EXPECT_EQ(pins->brief.values.at(0).integer, us(100));
  const auto finds_it_pinned = finding_after(2);
  ASSERT_TRUE(finds_it_pinned);
  EXPECT_THAT(finds_it_pinned->brief.pattern,
              ::testing::Not(::testing::HasSubstr("aten::pin_memory")));
}

TEST(ExposedCopyTest, IsQuietWhenTheCopyRunsBesideCompute) {
  EXPECT_FALSE(find_by_rule(with_copy("Memcpy HtoD (Pinned -> Device)", 9, "aten::copy_").trace(),
                            "exposed-copy"));
}

}  // namespace
}  // namespace lanescope::explain
