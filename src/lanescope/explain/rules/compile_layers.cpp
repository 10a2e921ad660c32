// What the rows around a call of compiled code are.
#include <algorithm>
#include <optional>

#include "lanescope/explain/rules/compiling.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::CompileLayer;

namespace {

struct LayersOfCalls {
  LayerTimes times;
  std::uint64_t calls = 0;
  std::size_t graph_count = 0;
  SliceId first_call = kNone<SliceId>;
};

std::optional<LayersOfCalls> measure_compile_layers(const Facts& facts) {
  const CompiledFacts compiled = compiled_facts_of(facts);
  const auto windows = facts.steady_cpu_windows();
  const std::uint64_t calls = calls_within(facts, compiled, windows);
  if (calls == 0) return std::nullopt;
  const auto steady_call =
      std::find_if(compiled.code.calls.begin(), compiled.code.calls.end(), [&](const auto& call) {
        return !facts.steps.marked || inside(windows, facts.trace->start_ns(call.slice));
      });
  return LayersOfCalls{.times = layer_times(facts, compiled, windows),
                       .calls = calls,
                       .graph_count = compiled.code.graphs.size(),
                       .first_call = steady_call->slice};
}

Finding tell_compile_layers(const Facts& facts, const LayersOfCalls& found) {
  Finding finding;
  const auto each = [&](CompileLayer layer) {
    return ns(found.times[static_cast<std::size_t>(layer)] /
              static_cast<std::int64_t>(found.calls));
  };
  finding.kind = FindingKind::kNormal;
  finding.verdict = say(
      "The rows around a compiled call are how torch.compile runs it, not compiling: per call the "
      "CPU spends {} checking guards (TorchDynamo Cache Lookup), {} in the rewritten function "
      "(Torch-Compiled Region), {} unpacking arguments (prologue) and {} in Inductor's own code "
      "(CompiledFxGraph).",
      {each(CompileLayer::kCacheLookup), each(CompileLayer::kRegion), each(CompileLayer::kPrologue),
       each(CompileLayer::kGraph)});
  finding.arithmetic.push_back(say(
      "own CPU time, without the operators and launches inside; calls: {}", {count(found.calls)}));
  if (found.graph_count > 0)
    finding.arithmetic.push_back(
        say("the text after CompiledFxGraph is the graph's key in Inductor's cache: the same key "
            "in every step is the same code; keys in this trace: {}",
            {count(found.graph_count)}));
  finding.evidence.push_back(
      called_at(facts, found.first_call, say("the first compiled call of a steady step")));
  finding.confidence = Confidence::kHigh;
  finding.sample_count = found.calls;
  finding.sample_noun = "compiled call";
  return finding;
}

}  // namespace

extern constinit const Rule compile_layers_rule = {
    .id = "compile-layers",
    .question = "what are the rows around a compiled call?",
    .order = 880,
    .run = measure_and_tell<measure_compile_layers, tell_compile_layers>,
    .only_on_request = true,
};

}  // namespace lanescope::explain::rules
