// Sorting of almost sorted columns, and sums of times that stay within 64 bits.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

namespace lanescope {

// Orders [begin, end) like std::stable_sort. Writers leave events close to their place, so one pass
// is enough: it moves each element that comes too late up to its place. Cost: O(n) then; with more
// than four moves per element on average, O(n log n).
template <typename Iterator, typename Less>
void sort_nearly_sorted(Iterator begin, Iterator end, Less less) {
  if (begin == end) return;
  auto moves_left = 4 * (end - begin);
  for (Iterator at = std::next(begin); at != end; ++at) {
    if (!less(*at, *std::prev(at))) continue;
    auto value = std::move(*at);
    Iterator hole = at;
    do {
      *hole = std::move(*std::prev(hole));
      --hole;
      --moves_left;
    } while (hole != begin && moves_left > 0 && less(value, *std::prev(hole)));
    *hole = std::move(value);
    if (moves_left <= 0) return std::stable_sort(begin, end, less);
  }
}

inline std::int64_t saturating_end(std::int64_t start, std::int64_t dur) {
  std::int64_t end = 0;
  return __builtin_add_overflow(start, dur, &end) ? std::numeric_limits<std::int64_t>::max() : end;
}

inline std::int64_t saturating_length(std::int64_t start, std::int64_t end) {
  std::int64_t length = 0;
  return __builtin_sub_overflow(end, start, &length) ? std::numeric_limits<std::int64_t>::max()
                                                     : length;
}

}  // namespace lanescope
