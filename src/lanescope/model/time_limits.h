// The times that a Trace may hold, so that every analysis can add and subtract them in 64 bits.
#pragma once
#include <cstdint>

namespace lanescope {

// 73 years in both directions: beyond any clock since 1970, so starts, ends and their differences
// fit 64 bits.
inline constexpr std::int64_t kMaxTimeNs = std::int64_t{1} << 61;
constexpr bool is_possible_time(std::int64_t ns) { return ns >= -kMaxTimeNs && ns <= kMaxTimeNs; }

// Sums of durations fit as well: those of 500,000 slices of 4.9 hours each, or of more that are
// shorter. Longer slices may have 9 years together: a thousand threads for three days. A sum above
// that comes from a damaged time.
class DurationLimit {
 public:
  static constexpr std::int64_t kLongNs = std::int64_t{1} << 44;
  static constexpr std::int64_t kMostLongNs = std::int64_t{1} << 58;

  // Takes a duration of 0 or more into the sum. False: it has no room, and nothing changed.
  bool take(std::int64_t dur_ns) {
    if (dur_ns <= kLongNs) return true;
    if (dur_ns > kMostLongNs - long_ns_) return false;
    long_ns_ += dur_ns;
    return true;
  }

 private:
  std::int64_t long_ns_ = 0;
};

}  // namespace lanescope
