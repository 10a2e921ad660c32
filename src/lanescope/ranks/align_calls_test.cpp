#include "lanescope/ranks/align_calls.h"

#include <gtest/gtest.h>

namespace lanescope::ranks {
namespace {

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
using Signs = std::vector<std::uint32_t>;

TEST(AlignCallsTest, EqualSequencesMatchPlaceByPlace) {
  const Alignment found = align_calls(Signs{1, 2, 1}, Signs{1, 2, 1});
  EXPECT_EQ(found.pairs, (Pairs{{0, 0}, {1, 1}, {2, 2}}));
  EXPECT_TRUE(found.replaced.empty());
}

TEST(AlignCallsTest, ACallThatDiffersBetweenEqualNeighboursIsReplaced) {
  const Alignment found = align_calls(Signs{1, 2, 3, 4}, Signs{1, 9, 3, 4});
  EXPECT_EQ(found.pairs, (Pairs{{0, 0}, {2, 2}, {3, 3}}));
  EXPECT_EQ(found.replaced, (Pairs{{1, 1}}));
}

TEST(AlignCallsTest, AMissingCallLeavesTheOthersMatched) {
  const Alignment found = align_calls(Signs{1, 2, 3, 4}, Signs{1, 3, 4});
  EXPECT_EQ(found.pairs, (Pairs{{0, 0}, {2, 1}, {3, 2}}));
  EXPECT_TRUE(found.replaced.empty());
}

// Which of the three 7s is missing is unknown: none of them is matched, the others are.
TEST(AlignCallsTest, ARunOfEqualCallsWithOneMissingIsLeftOut) {
  const Alignment found = align_calls(Signs{1, 7, 7, 7, 2}, Signs{1, 7, 7, 2});
  EXPECT_EQ(found.pairs, (Pairs{{0, 0}, {4, 3}}));
}

TEST(AlignCallsTest, ARunWithOneTooManyIsLeftOut) {
  const Alignment found = align_calls(Signs{1, 7, 2}, Signs{1, 7, 7, 2});
  EXPECT_EQ(found.pairs, (Pairs{{0, 0}, {2, 3}}));
}

// 1 2 1 2 1 2 without two of them may have lost any two: nothing is certain.
TEST(AlignCallsTest, APatternThatRepeatsWithCallsMissingIsNotMatched) {
  EXPECT_TRUE(align_calls(Signs{1, 2, 1, 2, 1, 2}, Signs{1, 2, 1, 2}).pairs.empty());
}

TEST(AlignCallsTest, SequencesThatAreTooLongAndDifferentKeepTheirEnds) {
  Signs a(3000, 1), b(3000, 2);
  a.front() = b.front() = a.back() = b.back() = 5;
  const Alignment found = align_calls(a, b);
  EXPECT_TRUE(found.gave_up);
  EXPECT_EQ(found.pairs, (Pairs{{0, 0}, {2999, 2999}}));
}

}  // namespace
}  // namespace lanescope::ranks
