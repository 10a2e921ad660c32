// What runs outside of the CUDA graphs: whole steps, or a part of each.
#include <map>
#include <optional>
#include <utility>

#include "lanescope/analysis/graph_replays.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Window;

namespace {

bool is_replayed(const Facts& facts, SliceId work) {
  const SliceId launch = facts.links.launch_of[raw(work)];
  return launch != kNone<SliceId> && analysis::is_graph_launch(*facts.trace, launch);
}

struct OutsideKernel {
  std::uint64_t runs = 0;
  std::int64_t gpu_ns = 0;
  SliceId longest = kNone<SliceId>;
};

struct OutsideGraphs {
  std::map<std::string, OutsideKernel> by_name;
  std::uint64_t replayed = 0;
  std::uint64_t kernels = 0;
  std::uint64_t bare_steps = 0;
  SliceId bare = kNone<SliceId>;
  std::int64_t waiting = 0;  // of the GPU in the bare steps
  std::int64_t outside_ns = 0;
  bool by_step = false;
};

std::optional<OutsideGraphs> measure_outside_graphs(const Facts& facts) {
  std::map<std::string, OutsideKernel> by_name;
  std::vector<const DeviceWork*> outside;
  std::uint64_t replayed = 0, kernels = 0;
  struct StepCounts {
    std::uint64_t replayed = 0, outside = 0;
  };
  std::vector<StepCounts> counts(step_count(facts));
  std::size_t step = 0;
  for (const DeviceWork* work : steady_work(facts)) {
    while (step + 1 < facts.selection.steady.size() &&
           facts.device().windows[facts.selection.steady[step + 1]].start_ns <= work->start_ns)
      ++step;
    if (is_replayed(facts, work->slice)) {
      ++replayed;
      ++counts[step].replayed;
      continue;
    }
    if (facts.trace->kind(work->slice) != CategoryKind::kKernel || work->before_recording) continue;
    ++kernels;
    ++counts[step].outside;
    outside.push_back(work);
    OutsideKernel& entry = by_name[std::string(facts.trace->name(work->slice))];
    ++entry.runs;
    entry.gpu_ns += work->end_ns - work->start_ns;
    if (entry.longest == kNone<SliceId> ||
        work->end_ns - work->start_ns > facts.trace->dur_ns(entry.longest))
      entry.longest = work->slice;
  }
  if (replayed == 0 || kernels == 0) return std::nullopt;
  std::uint64_t bare_steps = 0;
  SliceId bare = kNone<SliceId>;
  std::vector<Window> bare_windows;
  for (std::size_t i = 0; i < facts.selection.steady.size(); ++i) {
    if (counts[i].replayed > 0 || counts[i].outside < 5) continue;
    ++bare_steps;
    if (bare == kNone<SliceId>) bare = facts.steps.steps[facts.selection.steady[i]].slice;
    bare_windows.push_back(facts.device().windows[facts.selection.steady[i]]);
  }
  const std::int64_t outside_ns = union_ns(outside);
  const std::int64_t busy_ns = facts.wall.partition.busy_ns();
  const bool by_step =
      facts.steps.marked && bare_steps > 0 && bare_steps < facts.selection.steady.size();
  if (!by_step && (share_of(outside_ns, busy_ns) < 0.1 || kernels < 10)) return std::nullopt;
  std::int64_t waiting = 0;
  if (by_step)
    for (const HostStretch& part : parts_within(host_late_stretches(facts), bare_windows))
      waiting += part.end_ns - part.start_ns;
  return OutsideGraphs{std::move(by_name), replayed, kernels, bare_steps, bare, waiting,
                       outside_ns,         by_step};
}

Finding tell_outside_graphs(const Facts& facts, const OutsideGraphs& measured) {
  const auto& [by_name, replayed, kernels, bare_steps, bare, waiting, outside_ns, by_step] =
      measured;
  const std::int64_t busy_ns = facts.wall.partition.busy_ns();
  Finding finding;
  if (by_step) {
    finding.verdict =
        say("{} of {} steps ran without the CUDA graph that the others replay: a shape, or a "
            "branch, that was not captured.",
            {count(bare_steps), count(facts.selection.steady.size())});
    if (waiting > 0) {
      finding.verdict.pattern += bare_steps == 1 ? " In this step the GPU waited {} for the CPU."
                                                 : " In these steps the GPU waited {} for the CPU.";
      finding.verdict.values.push_back(ns(waiting));
    }
    finding.at_stake_ns = facts.per_step(waiting);
    finding.at_stake_ratio = share_of(waiting, facts.wall.partition.wall_ns);
    finding.evidence.push_back({bare, say("the first step without a replay")});
    finding.try_next = {"capture this size too, or pad the batch to the next captured size"};
    finding.brief = say("{} of {} steps do not replay the CUDA graph",
                        {count(bare_steps), count(facts.selection.steady.size())});
  } else {
    finding.kind = FindingKind::kWhere;
    finding.verdict =
        say(facts,
            "CUDA graphs replay {} [piece|pieces] of GPU work [per step]; {} [kernel|kernels] [per "
            "step] [runs|run] outside of them, {} ({} of the GPU's busy time).",
            {count(replayed / facts.selection.steady.size()),
             count(kernels / facts.selection.steady.size()), ns(facts.per_step(outside_ns)),
             ratio(outside_ns, busy_ns)});
    finding.try_next = {
        "check that every shape was captured; kernels outside are usual where only parts are "
        "captured (attention, sampling or prefill run outside)"};
  }
  std::vector<std::pair<std::string, OutsideKernel>> ranked(by_name.begin(), by_name.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.gpu_ns > b.second.gpu_ns; });
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i)
    finding.evidence.push_back(
        {ranked[i].second.longest,
         say("outside: {} x{}, {}", {kernel(ranked[i].first), count(ranked[i].second.runs),
                                     ns(ranked[i].second.gpu_ns)})});
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  return finding;
}

}  // namespace

extern constinit const Rule outside_graphs_rule = {
    .id = "outside-graphs",
    .question = "what runs outside of the CUDA graphs?",
    .order = 740,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_outside_graphs, tell_outside_graphs>,
    .is_regression = true,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules
