// When one track was busy, for windows that mostly come in order of time. Private to
// averages_by_track.cpp; interval_union.h answers for windows in any order.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lanescope/analysis/interval_union.h"

namespace lanescope::analysis {

class BusyPeriods {
 public:
  // In order of start. Nanoseconds.
  void add(std::int64_t start_ns, std::int64_t end_ns) {
    if (end_ns <= start_ns) return;
    if (!periods_.empty() && start_ns <= periods_.back().second)
      periods_.back().second = std::max(periods_.back().second, end_ns);
    else
      periods_.emplace_back(start_ns, end_ns);
  }
  // Those that come after all that were added.
  void add(const BusyPeriods& later) {
    for (const auto& [start_ns, end_ns] : later.periods_) add(start_ns, end_ns);
  }
  void add_to(IntervalUnion& all) const {
    for (const auto& [start_ns, end_ns] : periods_) all.add(start_ns, end_ns);
  }
  // After the last one was added.
  void finish() {
    before_.reserve(periods_.size());
    std::int64_t sum_ns = 0;
    for (const auto& [start_ns, end_ns] : periods_) {
      before_.push_back(sum_ns);
      sum_ns += end_ns - start_ns;
    }
  }
  // How long it was busy inside [start_ns, end_ns). `place`: where the last search ended; begin
  // with 0.
  std::int64_t within_ns(std::int64_t start_ns, std::int64_t end_ns, std::size_t& place) const {
    if (end_ns <= start_ns) return 0;
    const std::int64_t before_ns = up_to_ns(start_ns, place);
    std::size_t end_place =
        place;  // windows may contain each other, so the next one looks from here
    return up_to_ns(end_ns, end_place) - before_ns;
  }

 private:
  std::int64_t up_to_ns(std::int64_t time_ns, std::size_t& place) const {
    constexpr std::size_t kMostSteps = 8;
    const auto begins = [&](std::size_t i) { return periods_[i].first <= time_ns; };
    std::size_t after = place;  // how many periods begin until then
    const std::size_t last = std::min(place + kMostSteps, periods_.size());
    while (after < last && begins(after)) ++after;
    const bool is_found =
        (after == periods_.size() || !begins(after)) && (after == 0 || begins(after - 1));
    if (!is_found) {
      const auto found =
          std::partition_point(periods_.begin(), periods_.end(),
                               [&](const auto& period) { return period.first <= time_ns; });
      after = static_cast<std::size_t>(found - periods_.begin());
    }
    place = after;
    if (after == 0) return 0;
    const auto& [start_ns, end_ns] = periods_[after - 1];
    return before_[after - 1] + std::min(time_ns, end_ns) - start_ns;
  }

  std::vector<std::pair<std::int64_t, std::int64_t>> periods_;  // disjoint, in order
  std::vector<std::int64_t> before_;                            // their length before each
};

}  // namespace lanescope::analysis
