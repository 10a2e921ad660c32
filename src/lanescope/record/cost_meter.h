// Measures the cost of our callbacks from inside. About one call in 32 is measured, and its cost also
// counts for the calls since the last measured call. The calls are chosen at random, so that no rhythm of
// the program distorts the result. CostScale adds the cost outside of a callback, which the callback
// cannot measure (unseen_cost.h).
//
// Only for recordings with a budget (LANESCOPE_RECORD_MEASURE). A call that is not measured costs one
// decrement of the thread's countdown. A measured call costs two reads of the tick counter.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "lanescope/record/thread_writer.h"

namespace lanescope::record {

using CostScale = LanescopeCostScale;

class MeasuredCall {
 public:
  // `wanted` false: does nothing.
  explicit MeasuredCall(LanescopeCostKind kind, const CostScale& scale = lanescope_cost_scale,
                        bool wanted = true) noexcept
      : scale_(scale), kind_(kind) {
    LanescopeWriter* writer = wanted ? thread_writer() : nullptr;
    if (!writer || writer->cost.countdown-- != 0) [[likely]]
      return;
    cost_ = &writer->cost;
    begin_ = ticks();
  }
  ~MeasuredCall() {
    if (!cost_) [[likely]]
      return;
    const std::uint64_t own =
        std::min(ticks() - begin_, scale_.most) + scale_.unseen[kind_] + more_;
    const std::uint64_t stands_for = std::uint64_t{cost_->interval} + 1;
    add(cost_->ticks[kind_], own * stands_for);
    if (kind_ == kLanescopeOperators) add(cost_->calls, stands_for);
    cost_->seed = cost_->seed * 1664525u + 1013904223u;      // Numerical Recipes' generator
    cost_->interval = cost_->countdown = cost_->seed >> 26;  // 0 to 63
  }
  bool is_measured() const noexcept { return cost_ != nullptr; }
  // Ticks that this call costs in addition, outside of what it measures.
  void add_unseen(std::uint64_t ticks) noexcept { more_ += ticks; }
  MeasuredCall(const MeasuredCall&) = delete;
  MeasuredCall& operator=(const MeasuredCall&) = delete;

 private:
  // Relaxed: one thread writes a sum, and readers need no order between sums.
  static void add(std::atomic<std::uint64_t>& sum, std::uint64_t value) noexcept {
    sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
  const CostScale& scale_;
  const LanescopeCostKind kind_;
  LanescopeCost* cost_ = nullptr;
  std::uint64_t begin_ = 0, more_ = 0;
};

// Adds a cost that no call could measure.
inline void add_cost(LanescopeCostKind kind, std::uint64_t ticks) noexcept {
  if (LanescopeWriter* writer = thread_writer()) {
    std::atomic<std::uint64_t>& sum = writer->cost.ticks[kind];
    sum.store(sum.load(std::memory_order_relaxed) + ticks, std::memory_order_relaxed);
  }
}

// In a pause, the recorder leaves out ranges, but never those of steps: reports give times per step.
inline bool is_step_name(std::string_view name) noexcept {
  return name.starts_with("ProfilerStep#");
}

// Counts a range of the program that a pause leaves out.
inline void count_left_out_range() noexcept {
  if (LanescopeWriter* writer = thread_writer()) {
    std::atomic<std::uint64_t>& count = writer->cost.left_out_ranges;
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
}

// Begin or end of a range that the program opens.
class RangeCall {
 public:
  RangeCall() noexcept : RangeCall(record_options()) {}
  // The budget has no room for ranges now, except steps.
  bool is_paused() const noexcept { return paused_; }

 private:
  // In a pause a range costs less than its measurement: one test and one count.
  explicit RangeCall(std::uint32_t options) noexcept
      : paused_((options & LANESCOPE_RECORD_PAUSED_RANGES) != 0),
        cost_(kLanescopeRanges, lanescope_cost_scale,
              !paused_ && (options & LANESCOPE_RECORD_MEASURE) != 0) {}
  const bool paused_;
  const MeasuredCall cost_;
};

}  // namespace lanescope::record
