// A counter's values over time, and their range in each step of a picture.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lanescope::view {

// From its time until the next one.
struct CounterCell {
  std::int64_t start_ns = 0;
  double smallest = 0, largest = 0, last = 0;
  bool operator==(const CounterCell&) const = default;
};

class CounterSeries {
 public:
  // In order of time; of equal times, the last value stays.
  void add(std::int64_t time_ns, double value);
  void finish();  // before the first question

  std::size_t size() const { return time_ns_.size(); }
  double smallest() const { return smallest_; }
  double largest() const { return largest_; }
  const std::vector<std::int64_t>& times_ns() const { return time_ns_; }
  const std::vector<double>& values() const { return value_; }

  // The value at `t0`, if there is one, and all later ones before `t1`, one cell for each step_ns
  // that has any. O(cells * log n + values / 64).
  std::vector<CounterCell> cells(std::int64_t t0, std::int64_t t1, std::int64_t step_ns) const;

 private:
  static constexpr std::size_t kBlock = 64;
  struct Range {
    double smallest, largest;
  };
  Range range(std::size_t first, std::size_t last) const;

  std::vector<std::int64_t> time_ns_;
  std::vector<double> value_;
  std::vector<Range> blocks_;  // of 64 values each
  double smallest_ = 0, largest_ = 0;
};

}  // namespace lanescope::view
