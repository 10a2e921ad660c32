// Finds slow steps: those longer than a factor times the median of the steps before. Defined in
// docs/definitions/recording.md#slow-step.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace lanescope {

struct SlowStep {
  std::int64_t duration_ns = 0, median_ns = 0;
  std::uint32_t steps = 0;  // median_ns is the median of so many steps
};

// One thread at a time. Costs a partial sort of at most 64 numbers a step.
class StepClock {
 public:
  static constexpr std::size_t kSteps = 64, kLeast = 8;
  // `factor` above 1.
  explicit StepClock(double factor) : factor_(factor) {}

  // A step took this long. Returns a value if that is more than the factor times the median of the
  // last 64 steps (at least 8). Slow steps count in the median of later steps.
  std::optional<SlowStep> ended(std::int64_t duration_ns) {
    std::optional<SlowStep> slow;
    if (count_ >= kLeast) {
      const std::int64_t median = median_ns();
      if (static_cast<double>(duration_ns) > factor_ * static_cast<double>(median))
        slow = SlowStep{duration_ns, median, static_cast<std::uint32_t>(std::min(count_, kSteps))};
    }
    steps_[count_++ % kSteps] = duration_ns;
    return slow;
  }

 private:
  // With an even number of steps, the mean of the two in the middle, rounded down.
  std::int64_t median_ns() const {
    std::array<std::int64_t, kSteps> sorted = steps_;
    const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(count_, kSteps));
    const auto middle = sorted.begin() + (end - sorted.begin()) / 2;
    std::nth_element(sorted.begin(), middle, end);
    if ((end - sorted.begin()) % 2 != 0) return *middle;
    const std::int64_t below = *std::max_element(sorted.begin(), middle);
    return below + (*middle - below) / 2;
  }

  double factor_;
  std::array<std::int64_t, kSteps> steps_{};
  std::size_t count_ = 0;
};

}  // namespace lanescope
