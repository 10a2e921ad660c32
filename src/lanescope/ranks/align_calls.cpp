// Problem: training repeats itself, so when calls are missing there are often several ways to align two
// sequences, and a wrong pair is worse than none. Idea: make the alignment that matches as early as
// possible and the one that matches as late as possible, both as long as can be. Where they agree, there
// is only one way.
//
// Example: ABABAB against ABAB. The early one matches the first four, the late one the last four: they
// agree on nothing, and nothing is matched. ABCD against ABD agree on A, B and D.
#include "lanescope/ranks/align_calls.h"

#include <algorithm>
#include <iterator>

namespace lanescope::ranks {
namespace {

using Signs = std::vector<std::uint32_t>;
using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

// Lengths of the longest common subsequences of the ends from (i, j).
std::vector<std::uint32_t> common_lengths(std::span<const std::uint32_t> a,
                                          std::span<const std::uint32_t> b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::uint32_t> cells((a.size() + 1) * width, 0);
  for (std::size_t i = a.size(); i-- > 0;)
    for (std::size_t j = b.size(); j-- > 0;)
      cells[i * width + j] = a[i] == b[j]
                                 ? cells[(i + 1) * width + j + 1] + 1
                                 : std::max(cells[(i + 1) * width + j], cells[i * width + j + 1]);
  return cells;
}

// The longest common subsequence that matches as early as possible. False: too large, and only the equal
// begin and end are in `pairs`.
bool align_early(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b, Pairs& pairs) {
  std::size_t begin = 0, end = 0;
  const std::size_t shorter = std::min(a.size(), b.size());
  for (; begin < shorter && a[begin] == b[begin]; ++begin) pairs.emplace_back(begin, begin);
  while (end < shorter - begin && a[a.size() - 1 - end] == b[b.size() - 1 - end]) ++end;
  const auto middle_a = a.subspan(begin, a.size() - begin - end),
             middle_b = b.subspan(begin, b.size() - begin - end);
  const bool fits = (middle_a.size() + 1) * (middle_b.size() + 1) <= kMostAlignCells;
  if (fits) {
    const std::vector<std::uint32_t> cells = common_lengths(middle_a, middle_b);
    const std::size_t width = middle_b.size() + 1;
    for (std::size_t i = 0, j = 0; i < middle_a.size() && j < middle_b.size();) {
      if (middle_a[i] == middle_b[j])
        pairs.emplace_back(begin + i++, begin + j++);
      else if (cells[(i + 1) * width + j] >= cells[i * width + j + 1])
        ++i;
      else
        ++j;
    }
  }
  for (; end > 0; --end) pairs.emplace_back(a.size() - end, b.size() - end);
  return fits;
}

// The same as late as possible: early, in sequences that are turned round.
bool align_late(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b, Pairs& pairs) {
  const Signs turned_a(a.rbegin(), a.rend()), turned_b(b.rbegin(), b.rend());
  const bool fits = align_early(turned_a, turned_b, pairs);
  for (auto& [i, j] : pairs) {
    i = a.size() - 1 - i;
    j = b.size() - 1 - j;
  }
  std::reverse(pairs.begin(), pairs.end());
  return fits;
}

// Calls that face each other between matched neighbours, as many on both sides.
void find_replaced(Alignment& out, std::size_t size_a, std::size_t size_b) {
  std::size_t next_a = 0, next_b = 0;
  const auto close = [&](std::size_t a, std::size_t b) {
    if (a - next_a == b - next_b)
      for (std::size_t i = next_a; i < a; ++i) out.replaced.emplace_back(i, next_b + (i - next_a));
    next_a = a + 1;
    next_b = b + 1;
  };
  for (const auto& [a, b] : out.pairs) close(a, b);
  close(size_a, size_b);
}

}  // namespace

Alignment align_calls(std::span<const std::uint32_t> expected, std::span<const std::uint32_t> own) {
  Alignment out;
  if (expected.size() == own.size()) {
    std::size_t equal = 0;
    for (std::size_t i = 0; i < own.size(); ++i) equal += expected[i] == own[i] ? 1 : 0;
    if (equal * 4 >= own.size() * 3) {  // the same calls, of which a few differ
      for (std::size_t i = 0; i < own.size(); ++i)
        (expected[i] == own[i] ? out.pairs : out.replaced).emplace_back(i, i);
      return out;
    }
  }
  Pairs early, late;
  out.gave_up = !align_early(expected, own, early);
  out.gave_up |= !align_late(expected, own, late);
  std::set_intersection(early.begin(), early.end(), late.begin(), late.end(),
                        std::back_inserter(out.pairs));
  if (!out.gave_up && !out.pairs.empty()) find_replaced(out, expected.size(), own.size());
  return out;
}

}  // namespace lanescope::ranks
