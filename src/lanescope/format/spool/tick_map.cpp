#include "lanescope/format/spool/tick_map.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lanescope/base/sort_rows.h"

namespace lanescope::format {

TickMap::TickMap(std::vector<TickAnchor> anchors, std::uint64_t ticks_per_second) {
  const double rough = ticks_per_second != 0 ? 1e9 / static_cast<double>(ticks_per_second) : 1.0;
  sort_rows(anchors.begin(), anchors.end(),
            [](const TickAnchor& a, const TickAnchor& b) { return a.ticks < b.ticks; });
  constexpr std::int64_t kFar = std::int64_t{1} << 61;
  std::vector<TickAnchor>& good = anchors_;
  for (const TickAnchor& anchor : anchors) {
    if (std::abs(anchor.monotonic_ns) > kFar || std::abs(anchor.realtime_ns) > kFar) continue;
    if (!good.empty() &&
        (anchor.ticks == good.back().ticks || anchor.monotonic_ns <= good.back().monotonic_ns))
      continue;
    good.push_back(anchor);
  }
  if (good.empty()) {
    segments_.push_back({0, 0, rough});
    return;
  }
  const std::int64_t shift = good[0].realtime_ns - good[0].monotonic_ns;
  const auto rate = [](const TickAnchor& a, const TickAnchor& b) {
    return static_cast<double>(b.monotonic_ns - a.monotonic_ns) /
           static_cast<double>(b.ticks - a.ticks);
  };
  // Two anchors microseconds apart say little about the rate beyond them.
  const TickAnchor& first = good.front();
  const TickAnchor& last = good.back();
  const double outside =
      last.monotonic_ns - first.monotonic_ns > 1'000'000 ? rate(first, last) : rough;
  for (std::size_t i = 0; i < good.size(); ++i)
    segments_.push_back({good[i].ticks, good[i].monotonic_ns + shift,
                         i + 1 < good.size() ? rate(good[i], good[i + 1]) : outside});
  segments_.insert(segments_.begin(), {first.ticks, first.monotonic_ns + shift, outside});
  segments_.front().ticks = first.ticks;
}

std::optional<std::int64_t> TickMap::unix_ns(std::uint64_t ticks) const {
  const auto inside = [&](std::size_t i) {
    return segments_[i].ticks <= ticks &&
           (i + 1 == segments_.size() || ticks < segments_[i + 1].ticks);
  };
  if (!inside(last_)) {
    const auto after =
        std::upper_bound(segments_.begin(), segments_.end(), ticks,
                         [](std::uint64_t value, const Segment& s) { return value < s.ticks; });
    last_ =
        after == segments_.begin() ? 0 : static_cast<std::size_t>(after - segments_.begin()) - 1;
  }
  const Segment& segment = segments_[last_];
  const double ticks_since = ticks >= segment.ticks ? static_cast<double>(ticks - segment.ticks)
                                                    : -static_cast<double>(segment.ticks - ticks);
  const double ns = ticks_since * segment.ns_per_tick;
  if (!(std::abs(ns) < 3.2e18)) return std::nullopt;
  const std::int64_t whole = std::llround(ns);
  std::int64_t sum = 0;
  if (__builtin_add_overflow(segment.ns, whole, &sum)) return std::nullopt;
  return sum;
}

std::uint64_t TickMap::ticks_at(std::int64_t unix_ns) const {
  // unix_ns() never runs backwards, so a binary search finds the first tick that is not before.
  std::uint64_t low = 0, high = std::numeric_limits<std::uint64_t>::max();
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    const auto at = this->unix_ns(middle);
    // Too far away for a time: decide by which side of the known ticks it is on.
    const bool before = at ? *at < unix_ns : middle < segments_.front().ticks;
    if (before)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace lanescope::format
