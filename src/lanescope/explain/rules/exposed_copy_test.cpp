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

TEST(ExposedCopyTest, IsQuietWhenTheCopyRunsBesideCompute) {
  EXPECT_FALSE(find_by_rule(with_copy("Memcpy HtoD (Pinned -> Device)", 9, "aten::copy_").trace(),
                            "exposed-copy"));
}

}  // namespace
}  // namespace lanescope::explain
