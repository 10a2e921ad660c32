// The program pins memory inside a step. Pinning copies on the CPU, and the copy to the GPU waits for it.
#include <optional>
#include <string>
#include <vector>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr double kLeastPinningShare = 0.03;

struct Pinning {
  std::vector<SliceId> calls;
  std::int64_t time_ns = 0, idle_ns = 0;  // CPU time of the calls; GPU idle time during them
};

// Counts only calls of the main thread. The DataLoader pins in a separate thread, and that delays nothing.
std::optional<Pinning> measure_pinning_in_step(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  Pinning found;
  std::vector<Window> windows;
  for (const SliceId id : slices_named(facts, "aten::pin_memory")) {
    if (trace.kind(id) != CategoryKind::kCpuOp ||
        trace.slices().track[raw(id)] != facts.main_thread ||
        !inside(cpu_windows, trace.start_ns(id)))
      continue;
    found.calls.push_back(id);
    found.time_ns += trace.dur_ns(id);
    windows.push_back({trace.start_ns(id), trace.end_ns(id)});
  }
  found.idle_ns = device_idle_during(facts, std::move(windows));
  if (share_of(found.idle_ns, facts.steady_wall_ns()) < kLeastPinningShare) return std::nullopt;
  return found;
}

Finding tell_pinning_in_step(const Facts& facts, const Pinning& found) {
  Finding finding;
  finding.verdict =
      say(facts,
          "Memory is pinned in the steps: aten::pin_memory takes {} [per step] of the "
          "CPU's time, and the GPU is idle for {} of it ({}).",
          {ns(facts.per_step(found.time_ns)), ns(facts.per_step(found.idle_ns)),
           ratio(found.idle_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.idle_ns, found.calls.size(), finding);
  finding.spared_calls = found.calls;
  finding.arithmetic.push_back(
      say("pinning copies the data on the CPU; only then the copy to the GPU can begin"));
  finding.evidence.push_back(called_at(facts, found.calls.front(),
                                       say("the first of {} calls", {count(found.calls.size())})));
  finding.try_next = {
      "pin in another thread: DataLoader(pin_memory=True)",
      "or pin once: fill one pinned buffer again in each step, in turn with a second one while the "
      "first is copied"};
  finding.brief =
      say(facts, "aten::pin_memory copies data on the CPU, {} [per step], before the GPU's copy",
          {ns(facts.per_step(found.time_ns))});
  finding.action =
      say("Pin outside of the step: DataLoader(pin_memory=True), or fill a pinned buffer again");
  return finding;
}

}  // namespace

extern constinit const Rule pinning_in_step_rule = {
    .id = "pinning-in-step",
    .question = "is memory pinned in the steps?",
    .meant_by = "pin pinned pin_memory copy input",
    .order = 68,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_pinning_in_step, tell_pinning_in_step>,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules
