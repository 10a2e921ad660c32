// Puts slices into rows so that no two slices of a row overlap, and none is left out.
#pragma once
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace lanescope::view {

// A slice of length zero takes 1 ns of its row, so that it can be seen and selected.
constexpr std::int64_t row_end_ns(std::int64_t start_ns, std::int64_t dur_ns) {
  return start_ns + (dur_ns > 0 ? dur_ns : 1);
}

// Rows are depths: a slice lies below all slices that are open when it starts. Slices come in order
// of start, at equal starts the longer first. Amortised O(1) a slice.
class NestedRows {
 public:
  std::uint32_t place(std::int64_t start_ns, std::int64_t dur_ns) {
    while (!open_ends_.empty() && open_ends_.back() <= start_ns) open_ends_.pop_back();
    open_ends_.push_back(row_end_ns(start_ns, dur_ns));
    return static_cast<std::uint32_t>(open_ends_.size() - 1);
  }

 private:
  std::vector<std::int64_t> open_ends_;
};

// The first free row: row 0 has what a device does on a stream, further rows what overlaps it.
// Slices come in order of start. O(log rows) a slice.
class FirstFreeRows {
 public:
  std::uint32_t place(std::int64_t start_ns, std::int64_t dur_ns) {
    while (!busy_.empty() && busy_.top().first <= start_ns) {
      free_.push(busy_.top().second);
      busy_.pop();
    }
    std::uint32_t row = row_count_;
    if (free_.empty()) {
      ++row_count_;
    } else {
      row = free_.top();
      free_.pop();
    }
    busy_.emplace(row_end_ns(start_ns, dur_ns), row);
    return row;
  }

 private:
  template <typename T>
  using LeastFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;
  LeastFirst<std::pair<std::int64_t, std::uint32_t>> busy_;  // end, row
  LeastFirst<std::uint32_t> free_;
  std::uint32_t row_count_ = 0;
};

}  // namespace lanescope::view
