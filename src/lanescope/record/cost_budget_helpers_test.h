// A program whose calls cost something, under a budget: what tests of budgets drive.
#pragma once
#include <algorithm>
#include <cstdint>

#include "lanescope/record/cost_budget.h"

namespace lanescope::record {

inline constexpr std::int64_t kMs = 1'000'000;
inline constexpr std::int64_t kWall = 1'700'000'000'000'000'000;

// A program that makes `calls_per_s` calls, of which each costs what the thinning leaves of it. In
// a pause nothing is called.
struct Program {
  CostBudget budget;
  double inputs_ns = 100, stack_ns = 100, plain_ns = 100, calls_per_s = 0;
  double short_share = 0;  // of the plain cost: that of short operators
  std::int64_t now_ns = 0, paused_ns = 0;
  double ranges_ns_per_s = 0, memory_ns_per_s = 0, gpu_calls_ns_per_s = 0;  // goes on in a pause
  CostSum sum;
  int level_changes = 0;
  std::int64_t step_ms = 1;

  std::int64_t gpu_on_ns = 0;
  double most_beyond_ns = 0;  // of the cost, at any look

  explicit Program(double ratio, bool has_inputs = true, bool has_stacks = true,
                   bool has_memory = false, bool gpu_in_parts = false)
      : budget(ratio, has_inputs, has_stacks, has_memory, gpu_in_parts) {
    budget.open(0, kWall, sum);
  }
  // As ActiveRecorder does it. Its calls cost something only while CUPTI is there.
  void run_in_parts(std::int64_t ms) {
    for (const std::int64_t until = now_ns + ms * kMs; now_ns < until;) {
      now_ns += kMs;
      const GpuParts::State state = budget.gpu().state();
      const bool records = state == GpuParts::State::kWaiting || state == GpuParts::State::kOn;
      if (records && !budget.is_paused()) {
        const double calls = calls_per_s / 1e3;
        sum.calls += static_cast<std::uint64_t>(calls);
        sum.cost_ns += static_cast<std::int64_t>(calls * ns_per_call());
      }
      if (state == GpuParts::State::kOn) {
        sum.gpu_calls_ns += static_cast<std::int64_t>(gpu_calls_ns_per_s / 1e3);
        gpu_on_ns += kMs;
      }
      const auto change = budget.update(now_ns, kWall + now_ns, sum);
      if (change && change->begins_gpu) {
        now_ns += GpuParts::kAttachNs;
        sum.gpu_moves_ns += GpuParts::kAttachNs;
        budget.gpu_began(now_ns, kWall + now_ns, sum);
      } else if (change && change->ends_recording) {
        sum.gpu_moves_ns += GpuParts::kDetachNs;
      }
      most_beyond_ns = std::max(most_beyond_ns, static_cast<double>(sum.total_ns()) -
                                                    budget.ratio() * static_cast<double>(now_ns));
    }
  }
  double ns_per_call() const {
    const Thinning now = budget.thinning();
    return plain_ns * (now == Thinning::kShortOperators ? 1 - short_share : 1) +
           (now < Thinning::kStacks ? stack_ns : 0) + (now < Thinning::kInputs ? inputs_ns : 0);
  }
  void run(std::int64_t ms) {
    for (std::int64_t until = now_ns + ms * kMs; now_ns < until;) {
      now_ns += step_ms * kMs;
      const double seconds = static_cast<double>(step_ms) / 1e3;
      if (budget.end_ns()) {
        budget.update(now_ns, kWall + now_ns, sum);
        continue;
      }
      if (budget.is_paused()) {
        paused_ns += step_ms * kMs;
      } else {
        const double calls = calls_per_s * seconds;
        sum.calls += static_cast<std::uint64_t>(calls);
        sum.cost_ns += static_cast<std::int64_t>(calls * ns_per_call());
      }
      if (!budget.is_paused() || budget.thinning() != Thinning::kRangesInParts)
        sum.ranges_ns += static_cast<std::int64_t>(ranges_ns_per_s * seconds);
      if (!budget.memory_end_ns())
        sum.memory_ns += static_cast<std::int64_t>(memory_ns_per_s * seconds);
      sum.gpu_calls_ns += static_cast<std::int64_t>(gpu_calls_ns_per_s * seconds);
      const auto change = budget.update(now_ns, kWall + now_ns, sum);
      if (change && change->before != change->after) ++level_changes;
    }
  }
};

}  // namespace lanescope::record
