// A counter's values over time, and their range in each step of a picture.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lanescope/view/view_column.h"

namespace lanescope::view {

// From its time until the next one.
struct CounterCell {
  std::int64_t start_ns = 0;
  double smallest = 0, largest = 0, last = 0;
  bool operator==(const CounterCell&) const = default;
};

class CounterSeries {
 public:
  // In order of time. Of several values at one time, the last one stays.
  void add(std::int64_t time_ns, double value);
  // From then on the value is unknown, and its cells are NaN. Call it after the last value.
  void end_at(std::int64_t time_ns);
  void finish();  // before the first question

  std::size_t size() const { return time_ns_.size(); }
  double smallest() const { return smallest_; }
  double largest() const { return largest_; }
  std::span<const std::int64_t> times_ns() const { return time_ns_.rows(); }
  std::span<const double> values() const { return value_.rows(); }

  // The value at `t0`, if there is one, and all later ones before `t1`, one cell for each step_ns
  // that has any. O(cells * log n + values / 64).
  std::vector<CounterCell> cells(std::int64_t t0, std::int64_t t1, std::int64_t step_ns) const;

 private:
  static constexpr std::size_t kBlock = 64;
  friend struct CounterSections;  // kept_lanes.cpp: how they lie in a file
  struct Range {
    double smallest, largest;
    bool operator==(const Range&) const = default;
  };
  Range range(std::size_t first, std::size_t last) const;

  void find_range();  // of all values, by the blocks

  ViewColumn<std::int64_t> time_ns_;
  ViewColumn<double> value_;
  ViewColumn<Range> blocks_;  // of 64 values each
  double smallest_ = 0, largest_ = 0;
};

}  // namespace lanescope::view
