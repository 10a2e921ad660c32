// The rows around a call of compiled code: what they are.
#include <algorithm>

#include "lanescope/explain/rules/compiling.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/step_work.h"

namespace lanescope::explain::rules {

using analysis::CompileLayer;

namespace {

Outcome check_compile_layers(const Facts& facts) {
  const CompiledFacts compiled = compiled_facts_of(facts);
  const auto windows = facts.steady_cpu_windows();
  const std::uint64_t calls = calls_within(facts, compiled, windows);
  if (calls == 0) return Quiet{};
  const LayerTimes times = layer_times(facts, compiled, windows);
  const auto each = [&](CompileLayer layer) {
    return ns(times[static_cast<std::size_t>(layer)] / static_cast<std::int64_t>(calls));
  };
  const auto steady_call =
      std::find_if(compiled.code.calls.begin(), compiled.code.calls.end(), [&](const auto& call) {
        return !facts.steps.marked || inside(windows, facts.trace->start_ns(call.slice));
      });
  Finding finding;
  finding.kind = FindingKind::kNormal;
  finding.verdict = say(
      "The rows around a compiled call are how torch.compile runs it, not compiling: per call the "
      "CPU spends {} checking guards (TorchDynamo Cache Lookup), {} in the rewritten function "
      "(Torch-Compiled Region), {} unpacking arguments (prologue) and {} in Inductor's own code "
      "(CompiledFxGraph).",
      {each(CompileLayer::kCacheLookup), each(CompileLayer::kRegion), each(CompileLayer::kPrologue),
       each(CompileLayer::kGraph)});
  finding.arithmetic.push_back(
      say("own CPU time, without the operators and launches inside; calls: {}", {count(calls)}));
  if (!compiled.code.graphs.empty())
    finding.arithmetic.push_back(
        say("the text behind CompiledFxGraph is the graph's key in Inductor's cache: the same key "
            "in every step is the same code; keys in this trace: {}",
            {count(compiled.code.graphs.size())}));
  Sentence first = say("the first compiled call of a usual step");
  add_line(facts, steady_call->slice, first);
  finding.evidence.push_back({steady_call->slice, std::move(first)});
  finding.confidence = Confidence::kHigh;
  finding.sample_count = calls;
  finding.sample_noun = "compiled call";
  return finding;
}

}  // namespace

extern constinit const Rule compile_layers_rule = {
    .id = "compile-layers",
    .question = "what are the rows around a compiled call?",
    .order = 880,
    .run = check_compile_layers,
};

}  // namespace lanescope::explain::rules
