#include "lanescope/explain/rules/long_step_share.h"

#include <algorithm>
#include <utility>

#include "lanescope/explain/rules/device_time.h"

namespace lanescope::explain::rules {

using analysis::Window;

void explain_long_step(const Facts& facts, std::vector<Window> cpu_windows,
                       std::vector<Window> device_windows, Finding& finding) {
  if (!facts.selection.long_step) return;
  const Window whole = facts.step_window(*facts.selection.long_step);
  const auto clip = [&](std::vector<Window>& windows) {
    for (Window& window : windows) {
      window.start_ns = std::max(window.start_ns, whole.start_ns);
      window.end_ns = std::max(window.start_ns, std::min(window.end_ns, whole.end_ns));
    }
  };
  clip(cpu_windows);
  clip(device_windows);
  finding.explains.push_back({"long-step", device_idle_during(facts, std::move(cpu_windows)) +
                                               total_length(std::move(device_windows))});
}

std::int64_t outside_long_step(const Facts& facts, std::int64_t start_ns, std::int64_t end_ns) {
  if (!facts.selection.long_step) return end_ns - start_ns;
  const Window whole = facts.step_window(*facts.selection.long_step);
  const std::int64_t within = std::min(end_ns, whole.end_ns) - std::max(start_ns, whole.start_ns);
  return end_ns - start_ns - std::max<std::int64_t>(0, within);
}

}  // namespace lanescope::explain::rules
