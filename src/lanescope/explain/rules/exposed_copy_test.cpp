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

TEST(ExposedCopyTest, IsQuietWhenTheCopyRunsBesideCompute) {
  EXPECT_FALSE(find_by_rule(with_copy("Memcpy HtoD (Pinned -> Device)", 9, "aten::copy_").trace(),
                            "exposed-copy"));
}

}  // namespace
}  // namespace lanescope::explain
