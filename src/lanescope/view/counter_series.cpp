#include "lanescope/view/counter_series.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lanescope::view {

void CounterSeries::add(std::int64_t time_ns, double value) {
  if (!std::isfinite(value)) return;  // nothing that could be drawn
  if (!time_ns_.empty() && time_ns_[time_ns_.size() - 1] == time_ns) {
    value_.last() = value;
    return;
  }
  time_ns_.push_back(time_ns);
  value_.push_back(value);
}

void CounterSeries::end_at(std::int64_t time_ns) {
  if (time_ns_.empty() || time_ns <= time_ns_[time_ns_.size() - 1]) return;
  time_ns_.push_back(time_ns);
  value_.push_back(std::numeric_limits<double>::quiet_NaN());
}

void CounterSeries::finish() {
  blocks_ = {};
  for (std::size_t from = 0; from < value_.size(); from += kBlock) {
    Range block{value_[from], value_[from]};  // only the last value may be unknown
    for (std::size_t i = from + 1; i < std::min(from + kBlock, value_.size()); ++i)
      block = {std::min(block.smallest, value_[i]), std::max(block.largest, value_[i])};
    blocks_.push_back(block);
  }
  find_range();
}

void CounterSeries::find_range() {
  if (value_.empty()) return;
  const Range all = range(0, value_.size());
  smallest_ = all.smallest;
  largest_ = all.largest;
}

CounterSeries::Range CounterSeries::range(std::size_t first, std::size_t last) const {
  Range found{value_[first], value_[first]};
  const auto take = [&](double low, double high) {
    found.smallest = std::min(found.smallest, low);
    found.largest = std::max(found.largest, high);
  };
  while (first < last) {
    if (first % kBlock == 0 && first + kBlock <= last) {
      take(blocks_[first / kBlock].smallest, blocks_[first / kBlock].largest);
      first += kBlock;
    } else {
      take(value_[first], value_[first]);
      ++first;
    }
  }
  return found;
}

std::vector<CounterCell> CounterSeries::cells(std::int64_t t0, std::int64_t t1,
                                              std::int64_t step_ns) const {
  std::vector<CounterCell> cells;
  const auto end = static_cast<std::size_t>(std::lower_bound(time_ns_.begin(), time_ns_.end(), t1) -
                                            time_ns_.begin());
  auto at = static_cast<std::size_t>(std::upper_bound(time_ns_.begin(), time_ns_.end(), t0) -
                                     time_ns_.begin());
  if (at > 0) --at;  // the value that holds at t0
  while (at < end) {
    const std::int64_t bucket_end = (time_ns_[at] & ~(step_ns - 1)) + step_ns;
    const auto next = static_cast<std::size_t>(
        std::lower_bound(time_ns_.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                         time_ns_.begin() + static_cast<std::ptrdiff_t>(end), bucket_end) -
        time_ns_.begin());
    const Range found = range(at, next);
    cells.push_back({time_ns_[at], found.smallest, found.largest, value_[next - 1]});
    at = next;
  }
  return cells;
}

}  // namespace lanescope::view
