// torch.compile compiled while the steady steps ran: a guard failed, or code ran for the first
// time.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// Versions of functions that were compiled before, in a recording without marked steps.
struct Versions {
  std::string function;  // "0" of "0/1": the one with the most new versions
  std::size_t most = 0;  // of that function
  std::size_t all = 0;   // of all functions
};

struct Recompiles {
  std::optional<Versions> versions;  // without marked steps
  Compiling found;
  std::size_t later_steps = 0;
  std::size_t in_steps = 0;
  std::set<std::string, std::less<>> ids;
  std::int64_t lost = 0;
  std::int64_t wall_ns = 0;
  bool in_long_step_only = false;  // which no steady step pays for
};

// A start compiles each function once. New versions of one function are guards that failed, with or without marks.
constexpr std::size_t kFewestVersions = 3;
constexpr double kLeastVersionsShare = 0.05;

std::optional<Recompiles> measure_versions(const Facts& facts, const analysis::CompiledCode& code) {
  std::map<std::string_view, std::size_t> versions;  // by function
  std::vector<Window> windows;
  Recompiles measured;
  for (const CompileRun& run : code.compiles) {
    const std::size_t slash = run.id.find('/');
    if (slash == run.id.npos || run.id.substr(slash + 1) == "0") continue;
    if (!measured.ids.emplace(run.id).second) continue;
    ++versions[run.id.substr(0, slash)];
    windows.push_back({run.start_ns, run.end_ns});
  }
  if (versions.empty()) return std::nullopt;
  const auto most = std::max_element(versions.begin(), versions.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  measured.versions = {std::string(most->first), most->second, windows.size()};
  measured.found = compiling_within(code, windows);
  measured.lost =
      facts.main_device ? device_lost_ns(facts, code, measured.found) : measured.found.time_ns;
  measured.wall_ns = facts.steady_wall_ns();
  if (most->second < kFewestVersions ||
      share_of(measured.lost, measured.wall_ns) < kLeastVersionsShare)
    return std::nullopt;
  return measured;
}

Measurement<Recompiles> measure_recompiles(const Facts& facts) {
  const CompiledFacts compiled = compiled_facts_of(facts);
  if (compiled.code.compiles.empty()) return Quiet{};
  if (!facts.steps.marked)
    if (auto measured = measure_versions(facts, compiled.code)) return *std::move(measured);
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
  const auto long_step = facts.selection.long_step;
  const bool in_long_step_only = long_step && in_steps == std::set<std::size_t>{*long_step};
  return Recompiles{std::nullopt,    std::move(found), later.size(),
                    in_steps.size(), std::move(ids),   lost,
                    wall_ns,         in_long_step_only};
}

void tell_how_to_compile_once(Finding& finding) {
  finding.try_next = {
      "set TORCH_LOGS=recompiles to see the guard that failed; use torch._dynamo.mark_dynamic or "
      "torch.compile(dynamic=True) for sizes that change",
      "pad or bucket sizes; keep Python numbers that change (a step counter, a learning rate) in "
      "tensors"};
  finding.action =
      say("Use torch.compile(dynamic=True) for sizes that change; TORCH_LOGS=recompiles names the "
          "guard");
}

std::string list_of(const std::set<std::string, std::less<>>& ids) {
  std::string list;
  for (const std::string_view id : ids)
    if (list.size() < 60) list += (list.empty() ? "" : ", ") + std::string(id);
  return list;
}

Finding tell_versions(const Facts& facts, const Recompiles& measured) {
  const Versions& versions = *measured.versions;
  Finding finding;
  finding.verdict =
      say(facts,
          "torch.compile compiled functions again that it had compiled before, {} [time|times] in "
          "all: {} ({} of the recording). A guard on shapes, types or values failed each time.",
          {count(versions.all), ns(measured.found.time_ns),
           ratio(measured.found.time_ns, measured.wall_ns)});
  finding.at_stake_ns = measured.lost;
  finding.at_stake_ratio = share_of(std::min(measured.lost, measured.wall_ns), measured.wall_ns);
  finding.arithmetic.push_back(
      say("a region K/M is function K in its version M (K/0: compiled for the first time): {}; "
          "function {} has {} new versions",
          {name(list_of(measured.ids)), name(versions.function), count(versions.most)}));
  add_runs(facts, measured.found, finding);
  tell_how_to_compile_once(finding);
  finding.confidence = Confidence::kHigh;
  finding.sample_count = versions.all;
  finding.sample_noun = "compilation";
  finding.brief =
      say("torch.compile compiles one function again and again, {} times", {count(versions.most)});
  return finding;
}

Finding tell_recompiles(const Facts& facts, const Recompiles& measured) {
  if (measured.versions) return tell_versions(facts, measured);
  const auto& [versions, found, later_steps, in_steps, ids, lost, wall_ns, in_long_step_only] =
      measured;
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
  if (!ids.empty())
    finding.arithmetic.push_back(
        say("a region K/M is function K in its version M (K/0: compiled for the first time): {}, "
            "{} in all",
            {name(list_of(ids)), count(ids.size())}));
  if (facts.selection.long_step)
    finding.arithmetic.push_back(
        say("a mean of {} steps: step {}, which other numbers do not include, is one of them",
            {count(later_steps), step_number(facts, *facts.selection.long_step)}));
  if (facts.main_device) explain_long_step(facts, found.windows, {}, finding);
  add_runs(facts, found, finding);
  tell_how_to_compile_once(finding);
  finding.confidence = in_steps > 1 ? Confidence::kHigh : Confidence::kMedium;
  finding.sample_count = later_steps;
  finding.brief = facts.selection.one_chosen
                      ? say("torch.compile compiles during this step")
                      : say("torch.compile compiles in {} of {} steps after the first",
                            {count(in_steps), count(later_steps)});
  if (in_long_step_only) {
    finding.kind = FindingKind::kOnce;
    finding.at_stake_ns = lost;
    finding.at_stake_ratio = 0;
    finding.brief = say("torch.compile compiles again in step {}: {}",
                        {step_number(facts, *facts.selection.long_step), ns(found.time_ns)});
  }
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
