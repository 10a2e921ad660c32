#include "lanescope/profiler/slow_step_watch.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace lanescope {
namespace {

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

SlowStepWatch::SlowStepWatch(const Limits& limits)
    : limits_(limits),
      clock_(limits.factor),
      dumps_(limits.most_dumps, limits.kept_ns),
      step_began_ns_(steady_ns()) {}

void SlowStepWatch::step_ended(std::int64_t number, record::Recorder& recorder) {
  const std::int64_t now = steady_ns();
  const auto slow = clock_.ended(now - std::exchange(step_began_ns_, now));
  const auto order = dumps_.ended(now, number, slow);
  if (!order) return;
  const std::uint64_t replaced = order->replaced ? order->replaced->dump : 0;
  dumps_.dumped(now, recorder.request_dump(reason(*order, now), replaced));
}

std::string SlowStepWatch::reason(const SlowDumpRequest& order, std::int64_t now) const {
  const SlowStep& slow = order.step.slow;
  std::string why = fmt::format(
      "step {} took {:.3g} times the median of the {} steps before it ({:.3g} ms, median {:.3g} "
      "ms)",
      order.step.number,
      static_cast<double>(slow.duration_ns) / static_cast<double>(slow.median_ns), slow.steps,
      static_cast<double>(slow.duration_ns) * 1e-6, static_cast<double>(slow.median_ns) * 1e-6);
  if (slow.duration_ns > limits_.kept_ns) why += ", which is longer than the ring";
  if (order.waited)
    why += fmt::format(", {:.3g} s ago, soon after the last dump",
                       static_cast<double>(now - order.step.ended_ns) * 1e-9);
  if (order.replaced)
    why += fmt::format(", worse than step {} ({:.3g} ms), whose dump it replaces",
                       order.replaced->number,
                       static_cast<double>(order.replaced->slow.duration_ns) * 1e-6);
  if (order.is_last_place)
    why += fmt::format("; dump {} of {}: from now on a worse step replaces the mildest",
                       limits_.most_dumps, limits_.most_dumps);
  return why;
}

}  // namespace lanescope
