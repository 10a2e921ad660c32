// Measures the cost of our callbacks inside the callback: one call in 32, and it counts for those
// between. Chosen at random, so that no rhythm of the program distorts the result.
//
// Only for recordings with a budget (LANESCOPE_RECORD_MEASURE). A call that is not measured costs
// one decrement of a thread's number; a measured one two reads of the tick counter.
#pragma once
#include <algorithm>
#include <cstdint>

#include "lanescope/record/thread_writer.h"

namespace lanescope::record {

// Ticks; set before the first call is measured.
struct CostScale {
  // What torch adds around a call that it would not make without us.
  std::uint64_t around_call = 0;
  // A call that seems to take longer was interrupted.
  std::uint64_t most = ~std::uint64_t{0};
};

class MeasuredCall {
 public:
  explicit MeasuredCall(const CostScale& scale) noexcept : scale_(scale) {
    LanescopeWriter* writer = thread_writer();
    if (!writer || writer->cost.countdown-- != 0) [[likely]]
      return;
    cost_ = &writer->cost;
    begin_ = ticks();
  }
  ~MeasuredCall() {
    if (!cost_) [[likely]]
      return;
    const std::uint64_t own = std::min(ticks() - begin_, scale_.most) + scale_.around_call;
    const std::uint64_t stands_for = std::uint64_t{cost_->interval} + 1;
    add(cost_->ticks, own * stands_for);
    add(cost_->calls, stands_for);
    cost_->seed = cost_->seed * 1664525u + 1013904223u;      // Numerical Recipes' generator
    cost_->interval = cost_->countdown = cost_->seed >> 26;  // 0 to 63
  }
  bool is_measured() const noexcept { return cost_ != nullptr; }
  MeasuredCall(const MeasuredCall&) = delete;
  MeasuredCall& operator=(const MeasuredCall&) = delete;

 private:
  // Relaxed: one writer, and each sum is read alone.
  static void add(std::atomic<std::uint64_t>& sum, std::uint64_t value) noexcept {
    sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
  const CostScale& scale_;
  LanescopeCost* cost_ = nullptr;
  std::uint64_t begin_ = 0;
};

}  // namespace lanescope::record
