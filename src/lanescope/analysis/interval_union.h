// Busy time: the length of a union of intervals, whole or inside a window.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace lanescope::analysis {

// Half-open intervals in nanoseconds, added in any order. finish() merges, O(n log n); of intervals
// in order of their starts O(n), and then what overlaps takes no memory. Queries are O(log n).
class IntervalUnion {
 public:
  void add(std::int64_t start_ns, std::int64_t end_ns) {
    if (end_ns <= start_ns) return;
    if (!intervals_.empty()) {
      auto& [last_start_ns, last_end_ns] = intervals_.back();
      if (start_ns >= last_start_ns && start_ns <= last_end_ns) {
        last_end_ns = std::max(last_end_ns, end_ns);
        return;
      }
    }
    intervals_.emplace_back(start_ns, end_ns);
  }
  void finish();
  std::int64_t length_ns() const { return before_.empty() ? 0 : before_.back(); }
  // The part of the union inside [start_ns, end_ns).
  std::int64_t length_within_ns(std::int64_t start_ns, std::int64_t end_ns) const;

 private:
  std::int64_t length_up_to(std::int64_t time_ns) const;

  std::vector<std::pair<std::int64_t, std::int64_t>> intervals_;
  std::vector<std::int64_t> before_;  // length of the first i intervals
};

}  // namespace lanescope::analysis
