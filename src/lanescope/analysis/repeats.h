// Folds a sequence of calls into loops.
//
// Problem: a loop in Python leaves thousands of calls, and nobody counts them. Idea: find the
// shortest stretch that repeats without a break, replace all its rounds by one new symbol, and
// search again. So loops inside loops are found from the inside out. Example: s m a s m a s m a b
// is 3 x (s m a), b.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lanescope::analysis {

// Rounds of equal symbols, one after the other, at [first, end) of the sequence.
struct Repeat {
  static constexpr std::uint32_t kNoRepeat = ~std::uint32_t{0};
  std::uint32_t first = 0, end = 0;
  std::uint32_t rounds = 0;
  std::uint32_t parent = kNoRepeat;  // the repeat around it; later in the list
  std::uint32_t round_size() const { return (end - first) / rounds; }
};

inline constexpr std::uint32_t kFewestRounds = 3;
// Parts of a round; a repeat inside is one part. Longer rounds are found where many stretches of
// parts come again at one distance.
inline constexpr std::size_t kLongestCell = 128;

// Inner repeats come before those around them. At most O(n x kLongestCell) comparisons, and never
// more than kMostComparisons; repeats found until then are correct. Any thread.
std::vector<Repeat> find_repeats(std::span<const std::uint32_t> symbols);
inline constexpr std::size_t kMostComparisons = 200'000'000;

}  // namespace lanescope::analysis
