// The GPU waits for the layers around calls of compiled code: guards and wrappers.
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/between_regions.h"
#include "lanescope/explain/rules/compiling.h"
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/launch_mode.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/sentences.h"

namespace lanescope::explain::rules {

using analysis::CompileLayer;

namespace {

struct WaitForLayers {
  WaitTime wait;
  LayerTimes times;
  std::uint64_t calls = 0;
  bool has_fused = false;  // a kernel that torch.compile generated ran
  BreakCause cause;        // what runs between compiled calls
};

bool has_generated_kernels(const Facts& facts) {
  for (const analysis::DeviceWork& work : facts.device().timeline.work)
    if (inside(facts.steady_windows, work.start_ns) &&
        facts.trace->name(work.slice).starts_with("triton_"))
      return true;
  return false;
}

std::optional<WaitForLayers> measure_compile_overhead(const Facts& facts) {
  const CompiledFacts compiled = compiled_facts_of(facts);
  const auto windows = facts.steady_cpu_windows();
  const std::uint64_t calls = calls_within(facts, compiled, windows);
  if (calls == 0 || is_thin(facts)) return std::nullopt;
  // The rule graph-breaks reports calls that a graph break cuts into pieces.
  const std::vector<bool> broken = inside_broken_calls(facts, compiled);
  const WaitTime wait = waiting_while(facts, [&](SliceId slice) {
    return is_own_time(facts, compiled, slice) && !broken[raw(slice)];
  });
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  if (share_of(wait.time_ns, wall_ns) < 0.05) return std::nullopt;
  return WaitForLayers{.wait = wait,
                       .times = layer_times(facts, compiled, windows),
                       .calls = calls,
                       .has_fused = has_generated_kernels(facts),
                       .cause = break_cause(facts, compiled, false)};
}

// The layer with most of the time, and that there are others if it has less than half of it.
std::string words_of_layers(const LayerTimes& times) {
  constexpr std::pair<CompileLayer, const char*> kWords[] = {
      {CompileLayer::kGraph, "Inductor's wrapper code"},
      {CompileLayer::kCacheLookup, "torch.compile's guards"},
      {CompileLayer::kRegion, "the code of torch.compile's regions"},
      {CompileLayer::kPrologue, "the prologue of compiled code"}};
  const auto time_of = [&](CompileLayer layer) { return times[static_cast<std::size_t>(layer)]; };
  std::int64_t all_ns = 0;
  const auto* most = std::begin(kWords);
  for (const auto& each : kWords) {
    all_ns += time_of(each.first);
    if (time_of(each.first) > time_of(most->first)) most = &each;
  }
  return time_of(most->first) * 2 >= all_ns
             ? most->second
             : std::string(most->second) + " and other layers of torch.compile";
}

Finding tell_compile_overhead(const Facts& facts, const WaitForLayers& found) {
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  const auto of = [&](CompileLayer layer) { return found.times[static_cast<std::size_t>(layer)]; };
  const auto steps = step_count(facts);
  finding.verdict = say(facts,
                        "The GPU waits {} [per step] ({}) while the CPU is in torch.compile's own "
                        "layers; compiled calls [per step]: {}.",
                        {ns(facts.per_step(found.wait.time_ns)), ratio(found.wait.time_ns, wall_ns),
                         count(found.calls / steps)});
  finding.at_stake_ns = facts.per_step(found.wait.time_ns);
  finding.at_stake_ratio = share_of(found.wait.time_ns, wall_ns);
  finding.arithmetic.push_back(say(facts,
                                   "own CPU time [per step]: guards (cache lookup) {}, region {}, "
                                   "prologue {}, Inductor's wrapper code {}",
                                   {ns(facts.per_step(of(CompileLayer::kCacheLookup))),
                                    ns(facts.per_step(of(CompileLayer::kRegion))),
                                    ns(facts.per_step(of(CompileLayer::kPrologue))),
                                    ns(facts.per_step(of(CompileLayer::kGraph)))}));
  finding.evidence.push_back(
      called_at(facts, found.wait.longest,
                say("longest at once: in {}", {name(facts.trace->name(found.wait.longest))})));
  // A replay of a graph needs the guards, too.
  const bool replays = launch_mode_of(facts) == LaunchMode::kReplayed;
  const bool has_many_calls = found.calls > steps;
  if (has_many_calls)
    finding.try_next.push_back(
        "compile one larger function instead of many small ones: each call checks its own guards");
  if (!replays)
    finding.try_next.push_back(
        "torch.compile(mode=\"reduce-overhead\") replays a CUDA graph instead of running the "
        "wrapper code");
  if (!found.has_fused)
    finding.try_next.push_back("do not compile this function: nothing in it was fused");
  else if (!has_many_calls)
    finding.try_next.push_back(words_for(
        facts, "give each call more work: [if batch|a larger batch or ]more of the program"));
  finding.confidence = facts.confidence();
  finding.sample_count = found.calls;
  finding.sample_noun = "compiled call";
  finding.brief = say(facts, "The GPU waits for {}: {} compiled [call|calls] [per step]",
                      {text(words_of_layers(found.times)), count(found.calls / steps)});
  finding.action =
      has_many_calls
          ? (replays ? say("Compile one larger function: each call checks its own guards")
                     : say("Compile one larger function, or use "
                           "torch.compile(mode=\"reduce-overhead\")"))
      : replays
          ? say(facts, "Give each compiled call more work[if batch|, for example a larger batch]")
          : say(facts, "Use torch.compile(mode=\"reduce-overhead\")[if batch|, or a larger batch]");
  // One larger function is what the program has asked for, where something between the calls cuts it.
  if (has_many_calls && is_known_break(found.cause.op)) {
    append(finding.brief, say(", with {} between them", {name(found.cause.op)}));
    finding.action = advice_on_break(found.cause.op);
    finding.try_next.insert(
        finding.try_next.begin(),
        "what runs between the compiled calls may be what cuts one function into them: "
        "TORCH_LOGS=graph_breaks shows its line");
    finding.evidence.insert(
        finding.evidence.begin(),
        called_at(facts, found.cause.example, say("the first of the calls between them")));
  }
  return finding;
}

}  // namespace

extern constinit const Rule compile_overhead_rule = {
    .id = "compile-overhead",
    .question = "does the GPU wait for torch.compile's own layers?",
    .order = 710,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_compile_overhead, tell_compile_overhead>,
    .is_regression = true,
    .fix = Fix::kCpu,
    .fix_is_bound = true,  // a call needs its guards after each of these fixes, too
};

}  // namespace lanescope::explain::rules
