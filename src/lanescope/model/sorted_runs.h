// Sorts rows that consist of a few sorted runs. Writers leave such rows: all of one thread, then all of the next, then the runtime
// calls; or all kernels, then all annotations.
//
// Idea: a row that is too early by a few places is moved up inside of its run; one that is too early by more begins a run. Runs
// are merged in pairs. Example: 1 2 4 3 5 | 2 3 are two runs, and 3 moves up by one. Cost: O(n log runs);
// with more than 64 runs it calls sort_nearly_sorted().
#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "lanescope/model/nearly_sorted.h"

namespace lanescope {

// Where the runs begin, and `end`. Moves rows up inside of their runs. With over 64 runs it sorts all rows, and there is one run.
// Rows that are equal keep their order.
template <typename Iterator, typename Less>
std::vector<Iterator> order_into_runs(Iterator begin, Iterator end, Less less) {
  constexpr int kFewPlaces = 16;
  constexpr std::size_t kMostRuns = 64;
  if (begin == end) return {end};
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
    } else if (bounds.size() == kMostRuns) {
      sort_nearly_sorted(begin, end, less);
      return {begin, end};
    } else {
      bounds.push_back(at);
    }
  }
  bounds.push_back(end);
  return bounds;
}

// Orders [begin, end) like std::stable_sort.
template <typename Iterator, typename Less>
void sort_runs(Iterator begin, Iterator end, Less less) {
  std::vector<Iterator> bounds = order_into_runs(begin, end, less);
  while (bounds.size() > 2) {
    std::vector<Iterator> merged{begin};
    for (std::size_t i = 0; i + 1 < bounds.size(); i += 2) {
      const std::size_t last = std::min(i + 2, bounds.size() - 1);
      std::inplace_merge(bounds[i], bounds[i + 1], bounds[last], less);
      merged.push_back(bounds[last]);
    }
    bounds = std::move(merged);
  }
}

}  // namespace lanescope
