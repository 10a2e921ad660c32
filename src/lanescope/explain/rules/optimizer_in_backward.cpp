// The optimizer works inside the backward pass, on one parameter after the other: a hook calls it as soon as a gradient is
// there. foreach and fused calls then have lists of one tensor.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Window;

namespace {

constexpr std::uint64_t kFewestStepsInBackward = 4;  // in a step of the program
constexpr double kLeastOptimizerInBackwardShare = 0.05;

struct OptimizerInBackward {
  std::uint64_t steps = 0;    // of optimizers
  std::uint64_t kernels = 0;  // that they launch
  std::int64_t time_ns = 0;   // with a GPU the time in which it is idle during them
  SliceId longest = kNone<SliceId>;
};

bool is_step_in_backward(const Facts& facts, SliceId range) {
  return ancestor_named(facts, facts.nesting.parent[raw(range)], kEvaluateNode) != kNone<SliceId>;
}

std::optional<OptimizerInBackward> measure_optimizer_in_backward(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  OptimizerInBackward found;
  std::vector<Window> windows;
  std::int64_t own_ns = 0;
  for (const SliceId id : optimizer_steps(facts)) {
    if (!inside(cpu_windows, trace.start_ns(id)) || !is_step_in_backward(facts, id)) continue;
    ++found.steps;
    own_ns += trace.dur_ns(id);
    windows.push_back({trace.start_ns(id), trace.end_ns(id)});
    if (found.longest == kNone<SliceId> || trace.dur_ns(found.longest) < trace.dur_ns(id))
      found.longest = id;
  }
  if (found.steps < kFewestStepsInBackward * step_count(facts)) return std::nullopt;
  found.time_ns = own_ns;
  if (facts.main_device) {
    for (const DeviceWork* work : steady_work(facts)) {
      const SliceId range = optimizer_step_around(facts, facts.links.launch_of[raw(work->slice)]);
      if (range != kNone<SliceId> && is_step_in_backward(facts, range)) ++found.kernels;
    }
    found.time_ns = device_idle_during(facts, std::move(windows));
  }
  if (share_of(found.time_ns, facts.steady_wall_ns()) < kLeastOptimizerInBackwardShare)
    return std::nullopt;
  return found;
}

Finding tell_optimizer_in_backward(const Facts& facts, const OptimizerInBackward& found) {
  const std::uint64_t steps = found.steps / step_count(facts);
  Finding finding;
  finding.verdict =
      facts.main_device
          ? say(facts,
                "Optimizer.step runs {} times [per step] inside the backward pass, each with {} "
                "[piece|pieces] of GPU work; the GPU is idle for {} [per step] meanwhile ({}).",
                {count(steps), count(found.kernels / found.steps),
                 ns(facts.per_step(found.time_ns)), ratio(found.time_ns, facts.steady_wall_ns())})
          : say(facts,
                "Optimizer.step runs {} times [per step] inside the backward pass: {} [per step] "
                "({}).",
                {count(steps), ns(facts.per_step(found.time_ns)),
                 ratio(found.time_ns, facts.steady_wall_ns())});
  // One call for all parameters still takes as long as one of these.
  rate_cost(facts, found.time_ns - found.time_ns / static_cast<std::int64_t>(steps), found.steps,
            finding);
  finding.sample_noun = "optimizer step";
  finding.waiting_ns = facts.main_device ? finding.at_stake_ns : 0;
  finding.arithmetic.push_back(
      say(facts, "{} in these {} [step|steps] of optimizers [per step] - one of them",
          {ns(facts.per_step(found.time_ns)), count(steps)}));
  finding.evidence.push_back({found.longest, say("the longest of them")});
  finding.try_next = {
      "one optimizer for all parameters, called once after backward(): foreach and fused calls "
      "take all tensors at once",
      "gradients can then not be freed one by one; where memory is short for them, let a hook wait "
      "for a whole layer or more"};
  for (const char* covered : {"optimizer-loop", "optimizer-groups"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say("Optimizer.step runs {} times in a backward pass, for one parameter after the other",
          {count(steps)});
  finding.action =
      say("Where memory allows: one optimizer for all parameters, called once after backward()");
  return finding;
}

}  // namespace

extern constinit const Rule optimizer_in_backward_rule = {
    .id = "optimizer-in-backward",
    .question = "does a hook run the optimizer inside the backward pass?",
    .meant_by = "register_post_accumulate_grad_hook",
    .order = 753,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_optimizer_in_backward, tell_optimizer_in_backward>,
    .fix = Fix::kCpu,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules
