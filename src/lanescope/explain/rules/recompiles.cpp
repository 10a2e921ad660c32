// torch.compile compiled while the steady steps ran: a guard failed, or code ran for the first
// time.
#include <algorithm>
#include <set>
#include <utility>

#include "lanescope/explain/rules/compiling.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/long_step_share.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::CompileRun;
using analysis::Window;

namespace {

// The part in which the device did nothing, or ran only trials of the compiler.
std::int64_t device_lost_ns(const Facts& facts, const analysis::CompiledCode& code,
                            const Compiling& found) {
  std::vector<Window> real;  // work that is no trial, joined
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch != kNone<SliceId> && code.layer[raw(launch)] == analysis::CompileLayer::kCompiling)
      continue;
    if (!real.empty() && work.start_ns <= real.back().end_ns)
      real.back().end_ns = std::max(real.back().end_ns, work.end_ns);
    else
      real.push_back({work.start_ns, work.end_ns});
  }
  std::int64_t lost = found.time_ns;
  std::size_t at = 0;
  for (const Window& window : found.windows) {
    while (at < real.size() && real[at].end_ns <= window.start_ns) ++at;
    for (std::size_t i = at; i < real.size() && real[i].start_ns < window.end_ns; ++i)
      lost -= std::min(real[i].end_ns, window.end_ns) - std::max(real[i].start_ns, window.start_ns);
  }
  return lost;
}

struct Recompiles {
  Compiling found;
  std::size_t later_steps = 0;
  std::size_t in_steps = 0;
  std::set<std::string, std::less<>> ids;
  std::int64_t lost = 0;
  std::int64_t wall_ns = 0;
};

Measurement<Recompiles> measure_recompiles(const Facts& facts) {
  const CompiledFacts compiled = compiled_facts_of(facts);
  if (compiled.code.compiles.empty()) return Quiet{};
  if (!facts.steps.marked || facts.steps.steps.size() < 3) return NotChecked{need::kRecordSteps};
  const std::vector<std::size_t> later = facts.selection.later();
  if (later.front() < facts.steps.start_up_count) return Quiet{};  // cold-compile's
  std::vector<Window> windows;
  for (const std::size_t index : later)
    windows.push_back({facts.steps.steps[index].cpu_start_ns, facts.steps.steps[index].cpu_end_ns});
  Compiling found = compiling_within(compiled.code, windows);
  if (found.time_ns < 1'000'000) return Quiet{};
  std::set<std::string, std::less<>> ids;
  std::set<std::size_t> in_steps;
  for (const CompileRun* run : found.runs) {
    if (!run->id.empty()) ids.emplace(run->id);
    for (const std::size_t index : later)
      if (run->start_ns >= facts.steps.steps[index].cpu_start_ns &&
          run->start_ns < facts.steps.steps[index].cpu_end_ns)
        in_steps.insert(index);
  }
  const std::int64_t lost =
      facts.main_device ? device_lost_ns(facts, compiled.code, found) : found.time_ns;
  std::int64_t wall_ns = 0;
  for (std::size_t i = 0; i < later.size(); ++i)
    wall_ns += facts.main_device ? facts.device().walls[later[i]].partition.wall_ns
                                 : windows[i].length_ns();
  return Recompiles{std::move(found), later.size(), in_steps.size(), std::move(ids), lost, wall_ns};
}

Finding tell_recompiles(const Facts& facts, const Recompiles& measured) {
  const auto& [found, later_steps, in_steps, ids, lost, wall_ns] = measured;
  const auto steps = static_cast<std::int64_t>(later_steps);
  Finding finding;
  finding.verdict =
      facts.selection.one_chosen
          ? say("torch.compile compiled during this step for {}: a guard on shapes, types or "
                "values failed, or the step reached code that was not compiled yet.",
                {ns(found.time_ns)})
          : say(facts,
                "torch.compile compiled in {} of the {} [step|steps] after the first, {} [per "
                "step] on average: a guard on shapes, types or values failed, or a step reached "
                "code that was not compiled yet.",
                {count(in_steps), count(later_steps), ns(found.time_ns / steps)});
  finding.at_stake_ns = lost / steps;
  finding.at_stake_ratio = share_of(std::min(lost, wall_ns), wall_ns);
  if (facts.main_device)
    finding.arithmetic.push_back(
        say("compiling took {} in all; in {} of it the GPU was idle or ran the compiler's trials",
            {ns(found.time_ns), ns(lost)}));
  if (!ids.empty()) {
    std::string list;
    for (const std::string_view id : ids)
      if (list.size() < 60) list += (list.empty() ? "" : ", ") + std::string(id);
    finding.arithmetic.push_back(
        say("a region K/M is function K in its version M (K/0: compiled for the first time): {}, "
            "{} in all",
            {name(list), count(ids.size())}));
  }
  if (facts.selection.long_step)
    finding.arithmetic.push_back(
        say("a mean of {} steps: step {}, which other numbers do not include, is one of them",
            {count(later_steps), step_number(facts, *facts.selection.long_step)}));
  if (facts.main_device) explain_long_step(facts, found.windows, {}, finding);
  add_runs(facts, found, finding);
  finding.try_next = {
      "set TORCH_LOGS=recompiles to see the guard that failed; use torch._dynamo.mark_dynamic or "
      "torch.compile(dynamic=True) for sizes that change",
      "pad or bucket sizes; keep Python numbers that change (a step counter, a learning rate) in "
      "tensors"};
  finding.confidence = in_steps > 1 ? Confidence::kHigh : Confidence::kMedium;
  finding.sample_count = later_steps;
  finding.brief = facts.selection.one_chosen
                      ? say("torch.compile compiles during this step")
                      : say("torch.compile compiles in {} of {} steps after the first",
                            {count(in_steps), count(later_steps)});
  finding.action =
      say("Use torch.compile(dynamic=True) for sizes that change; TORCH_LOGS=recompiles names the "
          "guard");
  return finding;
}

}  // namespace

extern constinit const Rule recompiles_rule = {
    .id = "recompiles",
    .question = "does torch.compile compile again while the steps run?",
    .order = 700,
    .run = measure_and_tell<measure_recompiles, tell_recompiles>,
    .is_regression = true,
    .fix = Fix::kCpu,
};

}  // namespace lanescope::explain::rules
