#include "lanescope/base/result.h"

#include <gtest/gtest.h>

namespace lanescope {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error{Errc::kInvalidArgument, "expected an even number", 7};
  return value / 2;
}

Result<int> quarter(int value) {
  LANESCOPE_TRY(const int once, half(value));
  LANESCOPE_TRY(const int twice, half(once));
  return twice;
}

TEST(ResultTest, TryPassesTheValueOn) { EXPECT_EQ(*quarter(12), 3); }

TEST(ResultTest, TryPassesTheErrorUpWithItsOffset) {
  const Result<int> result = quarter(6);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kInvalidArgument);
  EXPECT_EQ(result.error().offset, 7u);
}

TEST(ResultTest, ReadingAValueThatIsNotThereEndsTheTool) {
  EXPECT_DEATH((void)half(3).value(), "expected has_value");
}

}  // namespace
}  // namespace lanescope
