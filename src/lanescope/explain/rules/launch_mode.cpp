#include "lanescope/explain/rules/launch_mode.h"

#include "lanescope/analysis/graph_replays.h"
#include "lanescope/explain/rules/enclosing_events.h"

namespace lanescope::explain::rules {

LaunchMode launch_mode_of(const Facts& facts) {
  for (const analysis::GraphReplay& replay :
       analysis::find_graph_replays(*facts.trace, facts.links))
    if (inside(facts.steady_windows, replay.start_ns)) return LaunchMode::kReplayed;
  const CompiledFacts compiled = compiled_facts_of(facts);
  const auto windows = facts.steady_cpu_windows();
  for (const analysis::CompiledCall& call : compiled.code.calls)
    if (!facts.steps.marked || inside(windows, facts.trace->start_ns(call.slice)))
      return LaunchMode::kCompiled;
  return compiled.code.graphs.empty() ? LaunchMode::kEager : LaunchMode::kCompiled;
}

}  // namespace lanescope::explain::rules
