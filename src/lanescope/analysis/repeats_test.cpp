#include "lanescope/analysis/repeats.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lanescope::analysis {
namespace {

std::vector<Repeat> repeats_of(std::string_view text) {
  const std::vector<std::uint32_t> symbols(text.begin(), text.end());
  return find_repeats(symbols);
}

TEST(RepeatsTest, RoundsOfSeveralCallsAreOneRepeat) {
  const auto found = repeats_of("xsmasmasmab");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].first, 1u);
  EXPECT_EQ(found[0].end, 10u);
  EXPECT_EQ(found[0].rounds, 3u);
  EXPECT_EQ(found[0].round_size(), 3u);
}

TEST(RepeatsTest, ARepeatInsideARepeatKnowsIt) {
  // 4 x (3 x a, b): three inner repeats would be wrong, there is one in each round.
  const auto found = repeats_of("aaabaaabaaabaaab");
  ASSERT_EQ(found.size(), 5u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(found[i].rounds, 3u);
    EXPECT_EQ(found[i].round_size(), 1u);
    EXPECT_EQ(found[i].parent, 4u);
  }
  EXPECT_EQ(found[4].rounds, 4u);
  EXPECT_EQ(found[4].first, 0u);
  EXPECT_EQ(found[4].end, 16u);
  EXPECT_EQ(found[4].parent, Repeat::kNoRepeat);
}

TEST(RepeatsTest, AShorterRoundIsFoundOnceItsPartsAreFolded) {
  // (3 x abcd, e) three times: the outer round has two parts once the inner one has four.
  const auto found = repeats_of("abcdabcdabcdeabcdabcdabcdeabcdabcdabcde");
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[3].rounds, 3u);
  EXPECT_EQ(found[3].round_size(), 13u);
}

// `count` symbols of which no two are equal, from `first` on.
std::vector<std::uint32_t> different(std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t> symbols;
  for (std::uint32_t i = 0; i < count; ++i) symbols.push_back(first + i);
  return symbols;
}

TEST(RepeatsTest, RoundsOfHundredsOfPartsAreFound) {
  // 4 x (300 different calls, then 3 x (2 calls)), with one call before and one after.
  std::vector<std::uint32_t> symbols{9000};
  for (int round = 0; round < 4; ++round) {
    const auto calls = different(1, 300);
    symbols.insert(symbols.end(), calls.begin(), calls.end());
    for (int i = 0; i < 3; ++i) symbols.insert(symbols.end(), {400, 401});
  }
  symbols.push_back(9001);
  const auto found = find_repeats(symbols);
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[4].first, 1u);
  EXPECT_EQ(found[4].rounds, 4u);
  EXPECT_EQ(found[4].round_size(), 306u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(found[i].parent, 4u);
}

TEST(RepeatsTest, LongStretchesThatComeAgainWithOtherCallsBetweenAreNoLoop) {
  // The same 200 calls three times, each time followed by calls of its own.
  std::vector<std::uint32_t> symbols;
  for (std::uint32_t round = 0; round < 3; ++round)
    for (const auto& calls : {different(1, 200), different(1000 + round * 100, 50)})
      symbols.insert(symbols.end(), calls.begin(), calls.end());
  EXPECT_TRUE(find_repeats(symbols).empty());
}

// The first fold of rounds of `size` symbols: where each begins and how many rounds it has, found by looking at each place.
std::vector<std::pair<std::size_t, std::size_t>> plain_rounds(std::string_view text,
                                                              std::size_t size) {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t at = 0; at + size < text.size();) {
    std::size_t equal = 0;
    while (at + equal + size < text.size() && text[at + equal] == text[at + equal + size]) ++equal;
    const std::size_t rounds = equal / size + 1;
    if (rounds >= kFewestRounds) found.emplace_back(at, rounds);
    at += rounds >= kFewestRounds ? rounds * size : equal + 1;
  }
  return found;
}

TEST(RepeatsTest, NoRoundIsSkippedInRandomTexts) {
  std::uint32_t state = 1;
  const auto draw = [&](std::uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 16) % below;
  };
  for (int text = 0; text < 2000; ++text) {
    std::string letters;
    for (std::uint32_t left = 1 + draw(40); left > 0; --left) {
      const std::string word = std::string(1, static_cast<char>('a' + draw(3))) + "xyz";
      for (std::uint32_t again = draw(4); again > 0; --again)
        letters += word.substr(0, 1 + text % 4);
      letters += static_cast<char>('a' + draw(3));
    }
    // The shortest rounds are folded first, so these are the first repeats.
    std::vector<std::pair<std::size_t, std::size_t>> expected;
    for (std::size_t size = 1; size < letters.size() && expected.empty(); ++size)
      expected = plain_rounds(letters, size);
    const std::vector<Repeat> found = repeats_of(letters);
    ASSERT_GE(found.size(), expected.size()) << letters;
    ASSERT_EQ(found.empty(), expected.empty()) << letters;
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(std::pair(std::size_t{found[i].first}, std::size_t{found[i].rounds}), expected[i])
          << letters;
  }
}

TEST(RepeatsTest, TwoRoundsAreNoLoop) { EXPECT_TRUE(repeats_of("abcabcx").empty()); }

TEST(RepeatsTest, AnEmptySequenceHasNone) {
  EXPECT_TRUE(repeats_of("").empty());
  EXPECT_TRUE(repeats_of("a").empty());
}

TEST(RepeatsTest, EqualRoundsOfDifferentLengthAreNotOneLoop) {
  // 3 x a, b, 4 x a, b, 3 x a, b: the counts differ, so the outer rounds are not equal.
  const auto found = repeats_of("aaabaaaabaaab");
  ASSERT_EQ(found.size(), 3u);
  for (const Repeat& each : found) EXPECT_EQ(each.parent, Repeat::kNoRepeat);
}

}  // namespace
}  // namespace lanescope::analysis
