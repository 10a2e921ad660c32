#include "lanescope/explain/rules/compiling.h"

#include <algorithm>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/evidence.h"

namespace lanescope::explain::rules {

using analysis::CompileLayer;
using analysis::CompileRun;
using analysis::Window;

bool is_own_time(const Facts& facts, const CompiledFacts& compiled, SliceId slice) {
  const CompileLayer layer = compiled.code.layer[raw(slice)];
  return layer != CompileLayer::kNone && layer != CompileLayer::kCompiling &&
         !is_api_call(facts.trace->kind(slice)) && !facts.trace->name(slice).starts_with("aten::");
}

std::vector<bool> inside_broken_calls(const Facts& facts, const CompiledFacts& compiled) {
  std::vector<bool> broken(facts.trace->slices().size(), false);
  for (const analysis::CompiledCall& call : compiled.code.calls)
    if (call.around != kNone<SliceId>) broken[raw(call.around)] = true;
  for (std::uint32_t i = 0; i < broken.size(); ++i)  // parents come before their children
    if (const SliceId up = compiled.nesting.parent[i]; up != kNone<SliceId> && broken[raw(up)])
      broken[i] = true;
  return broken;
}

LayerTimes layer_times(const Facts& facts, const CompiledFacts& compiled,
                       const std::vector<analysis::Window>& windows) {
  LayerTimes times{};
  for (std::uint32_t i = 0; i < compiled.code.layer.size(); ++i) {
    const SliceId id{i};
    if (compiled.code.layer[i] == CompileLayer::kNone ||
        (facts.steps.marked && !inside(windows, facts.trace->start_ns(id))) ||
        !is_own_time(facts, compiled, id))
      continue;
    times[static_cast<std::size_t>(compiled.code.layer[i])] +=
        std::max<std::int64_t>(0, compiled.nesting.self_ns[i]);
  }
  return times;
}

std::uint64_t calls_within(const Facts& facts, const CompiledFacts& compiled,
                           const std::vector<analysis::Window>& windows) {
  return static_cast<std::uint64_t>(
      std::count_if(compiled.code.calls.begin(), compiled.code.calls.end(), [&](const auto& call) {
        return !facts.steps.marked || inside(windows, facts.trace->start_ns(call.slice));
      }));
}

Compiling compiling_within(const analysis::CompiledCode& code, const std::vector<Window>& cpu) {
  Compiling found;
  for (const CompileRun& run : code.compiles)
    if (inside(cpu, run.start_ns)) found.runs.push_back(&run);
  sort_rows(found.runs.begin(), found.runs.end(),
            [](const CompileRun* a, const CompileRun* b) { return a->start_ns < b->start_ns; });
  for (const CompileRun* run : found.runs) {
    if (!found.windows.empty() && run->start_ns <= found.windows.back().end_ns)
      found.windows.back().end_ns = std::max(found.windows.back().end_ns, run->end_ns);
    else
      found.windows.push_back({run->start_ns, run->end_ns});
  }
  for (const Window& window : found.windows) found.time_ns += window.length_ns();
  sort_rows(found.runs.begin(), found.runs.end(), [](const CompileRun* a, const CompileRun* b) {
    return a->end_ns - a->start_ns > b->end_ns - b->start_ns;
  });
  return found;
}

void add_runs(const Facts& facts, const Compiling& found, Finding& finding) {
  for (std::size_t i = 0; i < found.runs.size() && i < 3; ++i) {
    const CompileRun& run = *found.runs[i];
    Sentence line =
        run.id.empty()
            ? say("{}: {}", {name(facts.trace->name(run.slice)), ns(run.end_ns - run.start_ns)})
            : say("compiled region {}: {}", {name(run.id), ns(run.end_ns - run.start_ns)});
    add_line(facts, run.slice, line);
    finding.evidence.push_back({run.slice, std::move(line)});
  }
}

}  // namespace lanescope::explain::rules
