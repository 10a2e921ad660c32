// The optimizer has many groups of parameters, and works on one after the other: foreach and fused calls take the
// tensors of one group.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr std::uint64_t kFewestGroups = 8;
constexpr double kLeastOptimizerGroupsShare = 0.03;

struct OptimizerGroups {
  std::uint64_t groups = 0, steps = 0, calls = 0;
  std::int64_t idle_ns = 0, saved_ns = 0;
  SliceId example = kNone<SliceId>;
};

bool is_of_list(std::string_view op) {
  return op.starts_with("aten::_foreach_") || op.starts_with("aten::_fused_");
}

// The optimizer calls each of its operators at least once for each group.
std::uint64_t groups_in(const Facts& facts, SliceId range, OptimizerGroups& found) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(range);
  std::map<std::string_view, std::uint64_t> calls;
  for (std::uint32_t i = raw(range) + 1; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (trace.start_ns(id) >= trace.end_ns(range)) break;
    if (facts.nesting.parent[i] != range || !is_of_list(trace.name(id))) continue;
    ++calls[trace.name(id)];
    ++found.calls;
  }
  std::uint64_t groups = 0;
  for (const auto& [op, times] : calls) groups = groups == 0 ? times : std::min(groups, times);
  return groups;
}

std::optional<OptimizerGroups> measure_optimizer_groups(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  OptimizerGroups found;
  std::vector<Window> windows;
  for (const SliceId id : optimizer_steps(facts)) {
    if (!inside(cpu_windows, trace.start_ns(id))) continue;
    const std::uint64_t groups = groups_in(facts, id, found);
    if (groups < kFewestGroups) return std::nullopt;
    found.groups = found.steps++ == 0 ? groups : std::min(found.groups, groups);
    windows.push_back({trace.start_ns(id), trace.end_ns(id)});
    if (found.example == kNone<SliceId>) found.example = id;
  }
  if (found.steps == 0) return std::nullopt;
  found.idle_ns = device_idle_during(facts, std::move(windows));
  found.saved_ns = found.idle_ns - found.idle_ns / static_cast<std::int64_t>(found.groups);
  if (share_of(found.saved_ns, facts.steady_wall_ns()) < kLeastOptimizerGroupsShare)
    return std::nullopt;
  return found;
}

Finding tell_optimizer_groups(const Facts& facts, const OptimizerGroups& found) {
  Finding finding;
  finding.verdict =
      say(facts,
          "The optimizer works on {} groups of parameters one after the other: {} calls in "
          "Optimizer.step, while the GPU is idle for {} [per step] ({}).",
          {count(found.groups), count(found.calls / found.steps), ns(facts.per_step(found.idle_ns)),
           ratio(found.idle_ns, facts.steady_wall_ns())});
  finding.at_stake_ns = facts.per_step(found.saved_ns);
  finding.at_stake_ratio = share_of(found.saved_ns, facts.steady_wall_ns());
  finding.arithmetic.push_back(
      say(facts, "idle time in Optimizer.step {} [per step] - that of one group, {}",
          {ns(facts.per_step(found.idle_ns)), ns(facts.per_step(found.idle_ns - found.saved_ns))}));
  finding.evidence.push_back({found.example, say("one Optimizer.step")});
  finding.try_next = {
      "put parameters with equal settings into one group: foreach and fused calls take all tensors "
      "of a group at once",
      "a group for each parameter is needed only where each has a learning rate of its own"};
  finding.brief = say("The optimizer works on {} groups of parameters one after the other",
                      {count(found.groups)});
  finding.action = say("Put parameters with equal settings into one group: fewer, larger calls");
  finding.confidence = facts.confidence();
  finding.sample_count = found.steps;
  finding.sample_noun = "optimizer step";
  return finding;
}

}  // namespace

extern constinit const Rule optimizer_groups_rule = {
    .id = "optimizer-groups",
    .question = "does the optimizer have many groups of parameters?",
    .meant_by = "param_groups adam adamw sgd",
    .order = 751,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_optimizer_groups, tell_optimizer_groups>,
    .fix = Fix::kCpu,
};

}  // namespace lanescope::explain::rules
