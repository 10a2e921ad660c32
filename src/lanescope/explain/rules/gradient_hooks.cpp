// Functions that the program registered for gradients (register_hook) run inside the backward pass, once for each tensor, and
// launch their small work one by one.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/owner_frames.h"
#include "lanescope/explain/python_frames.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr double kLeastHookShare = 0.05;
constexpr std::uint64_t kFewestHookCalls = 8;  // in a step

struct Hook {
  std::uint64_t calls = 0;
  std::int64_t time_ns = 0;
  SliceId longest = kNone<SliceId>;
};

struct GradientHooks {
  std::map<std::string_view, Hook> by_function;
  std::vector<Window> windows;
  std::uint64_t calls = 0, launches = 0;
  std::int64_t cost_ns = 0;
};

bool is_frame_of_program(const Facts& facts, SliceId id) {
  if (facts.trace->kind(id) != CategoryKind::kPythonFunction) return false;
  const names::PythonFrame* const frame = facts.frames.find(facts.trace->slices().name[raw(id)]);
  return frame && frame->is_of_program();
}

// Functions of the program that run in a node of autograd, before or after the node's own work.
void find_hooks(const Facts& facts, SliceId node, GradientHooks& found) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(node);
  std::int64_t until_ns = trace.start_ns(node);  // the node's own work, or a hook that is counted
  bool has_begun = false;
  for (std::uint32_t i = raw(node) + 1;
       i < track.first_slice + track.slice_count && trace.start_ns(SliceId{i}) < trace.end_ns(node);
       ++i) {
    const SliceId id{i};
    if (trace.start_ns(id) < until_ns) continue;
    if (!has_begun && trace.kind(id) == CategoryKind::kCpuOp &&
        trace.name(node).ends_with(trace.name(id))) {
      has_begun = true;
      until_ns = trace.end_ns(id);
    } else if (is_frame_of_program(facts, id)) {
      Hook& hook = found.by_function[trace.name(id)];
      ++hook.calls;
      ++found.calls;
      hook.time_ns += trace.dur_ns(id);
      if (hook.longest == kNone<SliceId> || trace.dur_ns(id) > trace.dur_ns(hook.longest))
        hook.longest = id;
      until_ns = trace.end_ns(id);
      found.windows.push_back({trace.start_ns(id), until_ns});
    }
  }
}

std::optional<GradientHooks> measure_gradient_hooks(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto steady = facts.steady_cpu_windows();
  GradientHooks found;
  for (const SliceId id : backward_nodes(facts))
    if (inside(steady, trace.start_ns(id))) find_hooks(facts, id, found);
  if (found.calls < kFewestHookCalls * step_count(facts)) return std::nullopt;
  const auto works = steady_work_launched_in(facts, joined(found.windows));
  found.launches = works.size();
  found.cost_ns = union_ns(works) + device_idle_during(facts, found.windows);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastHookShare) return std::nullopt;
  return found;
}

Finding tell_gradient_hooks(const Facts& facts, const GradientHooks& found) {
  const auto most = std::max_element(
      found.by_function.begin(), found.by_function.end(),
      [](const auto& a, const auto& b) { return a.second.time_ns < b.second.time_ns; });
  const Value function = name(short_frame(most->first));
  const Value calls = count(a_step(facts, found.calls)),
              launches = count(a_step(facts, found.launches));
  Finding finding;
  finding.verdict =
      say(facts,
          "Hooks of the program run inside the backward pass, {} [time|times] [per step], and make "
          "{} [launch|launches]. The launched work and the GPU's waiting for the hooks take {} "
          "({}). Most time is in {}.",
          {calls, launches, ns(facts.per_step(found.cost_ns)),
           ratio(found.cost_ns, facts.steady_wall_ns()), function});
  rate_cost(facts, found.cost_ns, found.calls, finding);
  finding.arithmetic.push_back(
      say("counted: functions of the program, by their Python frames, that run in a node of "
          "autograd before or after its own work; the GPU work that they launch, and the time "
          "in which the GPU was idle during them"));
  for (const auto& [frame, hook] : found.by_function)
    finding.evidence.push_back(
        {hook.longest,
         say(facts, "{} x{}: {} of the CPU [per step]; the longest call",
             {name(short_frame(frame)), count(hook.calls), ns(facts.per_step(hook.time_ns))})});
  finding.try_next = {
      "after backward(), do the same for all gradients at once: torch._foreach_norm, "
      "torch._foreach_mul_, torch.nn.utils.clip_grad_norm_",
      "a hook that must see a gradient before the pass goes on has to stay"};
  for (const char* covered : {"looped-calls", "equal-rounds", "graph-opportunity", "slow-launches",
                              "many-calls", "tiny-kernels"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say(facts, "{} runs as a hook in the backward pass, {} [time|times] [per step]",
                      {function, count(a_step(facts, most->second.calls))});
  finding.action = say(
      "Do it once for all gradients after backward(): torch._foreach_norm, torch._foreach_mul_");
  return finding;
}

}  // namespace

extern constinit const Rule gradient_hooks_rule = {
    .id = "gradient-hooks",
    .question = "do hooks of gradients hold up the backward pass?",
    .meant_by = "register_hook hook gradient backward clip",
    .order = 121,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .only_if = [](const Facts& facts) { return has_python_frames(*facts.trace); },
    .run = measure_and_tell<measure_gradient_hooks, tell_gradient_hooks>,
};

}  // namespace lanescope::explain::rules
