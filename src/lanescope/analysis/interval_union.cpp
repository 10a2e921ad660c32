#include "lanescope/analysis/interval_union.h"

#include <algorithm>

namespace lanescope::analysis {

void IntervalUnion::finish() {
  if (!std::is_sorted(intervals_.begin(), intervals_.end()))  // events mostly come in order
    std::sort(intervals_.begin(), intervals_.end());
  std::size_t kept = 0;
  for (const auto& interval : intervals_) {
    if (kept > 0 && interval.first <= intervals_[kept - 1].second)
      intervals_[kept - 1].second = std::max(intervals_[kept - 1].second, interval.second);
    else
      intervals_[kept++] = interval;
  }
  intervals_.resize(kept);
  before_.reserve(kept + 1);
  before_.assign(1, 0);
  for (const auto& [start, end] : intervals_) before_.push_back(before_.back() + (end - start));
}

std::int64_t IntervalUnion::length_up_to(std::int64_t time_ns) const {
  const auto after = std::upper_bound(
      intervals_.begin(), intervals_.end(), time_ns,
      [](std::int64_t time, const auto& interval) { return time < interval.first; });
  if (after == intervals_.begin()) return 0;
  const auto index = static_cast<std::size_t>(after - intervals_.begin()) - 1;
  return before_[index] + std::min(time_ns, intervals_[index].second) - intervals_[index].first;
}

std::int64_t IntervalUnion::length_within_ns(std::int64_t start_ns, std::int64_t end_ns) const {
  return end_ns <= start_ns ? 0 : length_up_to(end_ns) - length_up_to(start_ns);
}

}  // namespace lanescope::analysis
