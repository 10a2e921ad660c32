// Sorts rows that consist of a few sorted runs. Writers leave such rows: all of one thread, then all of the next, then the runtime
// calls; or all kernels, then all annotations. A long file may have such a group for each part of its recording.
//
// Idea: a row that is too early by a few places is moved up inside of its run; one that is too early by more begins a run. Runs
// are merged in pairs, and rows of a pair that are in their place already are not moved: runs of later parts follow those of
// earlier ones. Example: 1 2 4 3 5 | 2 3 are two runs; 3 moves up by one, and 1 stays where it is. Cost: O(n log runs); with
// runs of less than 4096 rows on average, and more than 64 of them, it calls sort_nearly_sorted().
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "lanescope/model/nearly_sorted.h"

namespace lanescope {

// Rows of [begin, middle) and [middle, end), each sorted, in one order. Of equal rows the first ones come first.
template <typename Iterator, typename Less>
void merge_two_runs(Iterator begin, Iterator middle, Iterator end, Less less) {
  if (middle == end || !less(*middle, *std::prev(middle))) return;
  begin = std::upper_bound(begin, middle, *middle, less);
  end = std::lower_bound(middle, end, *std::prev(middle), less);
  std::inplace_merge(begin, middle, end, less);
}

// `bounds`: where runs begin, and the end. Half as many runs are left.
template <typename Iterator, typename Less>
void merge_pairs_of_runs(std::vector<Iterator>& bounds, Less less) {
  std::size_t kept = 1;
  for (std::size_t i = 0; i + 1 < bounds.size(); i += 2) {
    const std::size_t last = std::min(i + 2, bounds.size() - 1);
    merge_two_runs(bounds[i], bounds[i + 1], bounds[last], less);
    bounds[kept++] = bounds[last];
  }
  bounds.resize(kept);
}

// Where the runs begin, and `end`: at most 64 runs. Moves rows up inside of their runs, merges what is more than 64 runs, and sorts
// all rows where runs are short. Rows that are equal keep their order.
template <typename Iterator, typename Less>
std::vector<Iterator> order_into_runs(Iterator begin, Iterator end, Less less) {
  constexpr int kFewPlaces = 16;
  constexpr std::size_t kMostRuns = 64;
  constexpr std::size_t kLongRun = 4096;
  if (begin == end) return {end};
  const std::size_t enough = std::max(kMostRuns, static_cast<std::size_t>(end - begin) / kLongRun);
  std::vector<Iterator> bounds{begin};
  for (Iterator at = std::next(begin); at != end; ++at) {
    if (!less(*at, *std::prev(at))) continue;
    Iterator place = std::prev(at);
    for (int moved = 1;
         moved < kFewPlaces && place != bounds.back() && less(*at, *std::prev(place)); ++moved)
      --place;
    if (place == bounds.back() || !less(*at, *std::prev(place))) {
      auto value = std::move(*at);
      std::move_backward(place, at, std::next(at));
      *place = std::move(value);
    } else if (bounds.size() == enough) {
      sort_nearly_sorted(begin, end, less);
      return {begin, end};
    } else {
      bounds.push_back(at);
    }
  }
  bounds.push_back(end);
  while (bounds.size() > kMostRuns + 1) merge_pairs_of_runs(bounds, less);
  return bounds;
}

// Orders [begin, end) like std::stable_sort.
template <typename Iterator, typename Less>
void sort_runs(Iterator begin, Iterator end, Less less) {
  std::vector<Iterator> bounds = order_into_runs(begin, end, less);
  while (bounds.size() > 2) merge_pairs_of_runs(bounds, less);
}

}  // namespace lanescope
