// Which steps are slow: longer than some times the median of the steps before them. Defined in
// docs/definitions.md#slow-step.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace lanescope {

struct SlowStep {
  std::int64_t duration_ns = 0, median_ns = 0;
  std::uint32_t steps = 0;  // that the median is of
};

// One thread at a time. Costs a partial sort of at most 64 numbers a step.
class StepClock {
 public:
  static constexpr std::size_t kSteps = 64, kLeast = 8;
  // `factor` above 1.
  explicit StepClock(double factor) : factor_(factor) {}

  // A step took this long. Something when that is more than the factor times the median of the up
  // to 64 steps before it, which are at least 8. Slow steps count for the median of later ones.
  std::optional<SlowStep> ended(std::int64_t duration_ns) {
    std::optional<SlowStep> slow;
    if (count_ >= kLeast) {
      std::array<std::int64_t, kSteps> sorted = steps_;
      const std::size_t count = std::min(count_, kSteps);
      const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((count - 1) / 2);
      std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(count));
      if (static_cast<double>(duration_ns) > factor_ * static_cast<double>(*middle))
        slow = SlowStep{duration_ns, *middle, static_cast<std::uint32_t>(count)};
    }
    steps_[count_++ % kSteps] = duration_ns;
    return slow;
  }

 private:
  double factor_;
  std::array<std::int64_t, kSteps> steps_{};
  std::size_t count_ = 0;
};

}  // namespace lanescope
