// Learns the typical length of each operator from a few of its calls.
//
// Problem: a recording with a budget leaves out short operators, but an operator's length is known
// only at its end. Idea: calls of one operator take about the same time, so the measured calls
// (cost_meter.h) predict the next ones. One table serves all threads. Calls of a new name are
// recorded until the name was measured a few times. Cost: one load to ask; one load and one store
// for a measured call. When two threads measure a name at once, one sample is lost.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace lanescope::record {

class OperatorLengths {
 public:
  static constexpr std::uint32_t kNames = 4096;    // later names are never left out
  static constexpr std::uint64_t kMinSamples = 4;  // fewer are not trusted
  static constexpr std::uint64_t kWeight = 16;     // the mean covers about this many last samples

  // A sample counts as at most `ticks`, so that one interrupted call does not distort the mean.
  void set_longest(std::uint64_t ticks) noexcept {
    longest_.store(std::min(ticks, kMostTicks), std::memory_order_relaxed);
  }
  void learn(std::uint32_t name, std::uint64_t ticks) noexcept {
    if (name >= kNames) return;
    const std::uint64_t old = means_[name].load(std::memory_order_relaxed);
    const std::uint64_t samples = std::min(old >> kShift, kWeight - 1);
    const std::uint64_t sum = (old & kMostTicks) * samples;
    const std::uint64_t own = std::min(ticks, longest_.load(std::memory_order_relaxed));
    means_[name].store((samples + 1) << kShift | (sum + own) / (samples + 1),
                       std::memory_order_relaxed);
  }
  bool is_shorter(std::uint32_t name, std::uint64_t limit_ticks) const noexcept {
    if (name >= kNames) return false;
    const std::uint64_t mean = means_[name].load(std::memory_order_relaxed);
    return mean >> kShift >= kMinSamples && (mean & kMostTicks) < limit_ticks;
  }

 private:
  static constexpr unsigned kShift = 48;
  static constexpr std::uint64_t kMostTicks = (std::uint64_t{1} << kShift) / kWeight - 1;
  std::atomic<std::uint64_t> longest_{kMostTicks};
  // By name id: number of samples in the upper 16 bits, mean in ticks below.
  std::array<std::atomic<std::uint64_t>, kNames> means_{};
};

}  // namespace lanescope::record
