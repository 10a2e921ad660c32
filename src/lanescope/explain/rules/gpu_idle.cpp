// The GPU is idle for a part of the step: where, and why as far as the trace shows.
#include <algorithm>
#include <optional>

#include "lanescope/base/wide.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Gap;
using analysis::IdleCause;

namespace {

const char* cause_text(IdleCause cause) {
  switch (cause) {
    case IdleCause::kHostLate:
      return "the CPU had not launched the next work yet";
    case IdleCause::kAfterSync:
      return "the CPU had waited for the GPU and then had to launch new work";
    case IdleCause::kLaunchLatency:
      return "launched work was on its way to the GPU";
    case IdleCause::kBetweenQueued:
      return "short pauses between queued kernels";
    case IdleCause::kWaiting:
      return "launched work did not start: a dependency between streams, or something the trace "
             "does not hold";
    case IdleCause::kProfiler:
      return "the profiler's own work";
    case IdleCause::kBeforeFirstWork:
      return "the first launch was still to come";
    case IdleCause::kAfterLastWork:
      return "nothing more was launched";
    case IdleCause::kUnknown:
      return "unknown: the work after it has no launch call in the trace";
  }
  return "";
}

bool has_operators(const Trace& trace) {
  return std::any_of(trace.categories().begin(), trace.categories().end(),
                     [](const Category& each) { return each.kind == CategoryKind::kCpuOp; });
}

bool has_launch_calls(const Trace& trace) {
  return std::any_of(trace.categories().begin(), trace.categories().end(),
                     [](const Category& each) { return is_api_call(each.kind); });
}

// What to do about most of the idle time depends on its cause.
const char* advice(IdleCause cause, const Trace& trace) {
  switch (cause) {
    case IdleCause::kLaunchLatency:
    case IdleCause::kBetweenQueued:
      return "use fewer, longer kernels (fusion, torch.compile), or a CUDA graph, whose kernels "
             "follow each other more closely";
    case IdleCause::kWaiting:
      return "look at what the stream waited for: events of other streams, other ranks, another "
             "process on this GPU; launching faster does not help";
    case IdleCause::kProfiler:
      return "do not optimise it: a run without the profiler does not have these gaps";
    case IdleCause::kUnknown:
      return has_launch_calls(trace)
                 ? "record whole steps: the file holds launch calls, but not those of this work"
             : has_operators(trace)
                 ? "record the launch calls too, which torch.profiler does with "
                   "ProfilerActivity.CUDA: they show why"
                 : "record the CPU's side too (ProfilerActivity.CPU): the launch calls show why";
    default:
      return "look at these times in the trace: shorten what the CPU did there, or move it out of "
             "the step";
  }
}

void add_first_screen(IdleCause cause, const Trace& trace, Finding& finding) {
  switch (cause) {
    case IdleCause::kAfterSync:
      finding.brief = say("The GPU is idle after the CPU waited for it");
      finding.action = say("Remove .item(), .cpu() and synchronize() from the loop");
      return;
    case IdleCause::kLaunchLatency:
    case IdleCause::kBetweenQueued:
      finding.brief = say("The GPU is idle in short pauses between kernels");
      finding.action = say("Use fewer, longer kernels: torch.compile, or a CUDA graph");
      return;
    case IdleCause::kWaiting:
      finding.brief = say("The GPU is idle: launched work does not start");
      finding.action = say("Find what the stream waits for: other streams, ranks or processes");
      return;
    case IdleCause::kProfiler:
      finding.brief = say("The GPU is idle while the profiler works");
      finding.action = say("Change nothing: a run without the profiler has no such gaps");
      return;
    case IdleCause::kUnknown:
      finding.brief = say("The GPU is idle, and the trace does not show why");
      finding.action =
          has_launch_calls(trace)
              ? say("Record whole steps: the launch calls of this work are not in the file")
          : has_operators(trace)
              ? say("Record the launch calls too (ProfilerActivity.CUDA): they show why")
              : say("Record the CPU's side too: ProfilerActivity.CPU");
      return;
    default:
      finding.brief = say("The GPU waits for the CPU to launch its next work");
      finding.action =
          say("Do less on the CPU between launches, or launch more at once: torch.compile");
  }
}

// The graph launch in which the GPU spends two fifths of its idle time or more; null: none.
const HostShare* graph_launch_in(const Facts& facts, const std::vector<HostShare>& shares) {
  for (const HostShare& share : shares)
    if (is_api_call(share.kind) && find_api_call(share.name).does(api_effect::kLaunchesGraph) &&
        share.time_ns * 5 >= facts.wall.partition.idle_ns * 2)
      return &share;
  return nullptr;
}

void tell_graph_launch(const Facts& facts, const HostShare& launch, Finding& finding) {
  finding.arithmetic.push_back(
      say(facts,
          "{} [per step] of it, {}, is inside {}: the call that launches a graph, not the CPU's "
          "work before it",
          {ns(facts.per_step(launch.time_ns)), ratio(launch.time_ns, facts.wall.partition.idle_ns),
           name(launch.name)}));
  finding.brief = say("The GPU waits while a graph is launched, in {}", {name(launch.name)});
  finding.action =
      say("Fuse kernels before the capture: a graph of fewer nodes is launched faster");
  finding.try_next = {"a graph of fewer nodes is launched faster: fuse kernels before the capture",
                      "if it is the graph's first launch: that one also uploads it to the GPU "
                      "(cudaGraphUpload does only that), later ones are shorter"};
}

struct IdleGpu {
  IdleCause main_cause = IdleCause::kUnknown;  // of most of the idle time
  const Gap* longest = nullptr;
};

std::optional<IdleGpu> measure_gpu_idle(const Facts& facts) {
  const auto& part = facts.wall.partition;
  if (is_thin(facts) || share_of(part.idle_ns, part.wall_ns) < 0.1) return std::nullopt;
  if (const analysis::Gap* edge = find_edge_gap(facts)) {
    const std::int64_t gap_ns = edge->end_ns - edge->start_ns;
    if (share_of(part.idle_ns - gap_ns, part.wall_ns - gap_ns) < 0.1) return std::nullopt;
  }
  const auto& idle = facts.wall.idle;
  IdleGpu found;
  found.main_cause =
      static_cast<IdleCause>(std::max_element(idle.begin(), idle.end()) - idle.begin());
  for (const Gap& gap : facts.device().gaps.gaps)
    if (inside(facts.steady_windows, gap.start_ns) &&
        (!found.longest ||
         gap.end_ns - gap.start_ns > found.longest->end_ns - found.longest->start_ns))
      found.longest = &gap;
  return found;
}

Finding tell_gpu_idle(const Facts& facts, const IdleGpu& found) {
  const auto& part = facts.wall.partition;
  const auto& idle = facts.wall.idle;
  const IdleCause cause = found.main_cause;
  Finding finding;
  finding.verdict = say(facts, "The GPU was idle {} of [a step's] {} ({}); {} of that because: {}.",
                        {ns(facts.per_step(part.idle_ns)), ns(facts.per_step(part.wall_ns)),
                         ratio(part.idle_ns, part.wall_ns),
                         ratio(facts.wall.idle_by(cause), part.idle_ns), text(cause_text(cause))});
  finding.at_stake_ns = facts.per_step(part.idle_ns);
  finding.at_stake_ratio = share_of(part.idle_ns, part.wall_ns);
  for (std::size_t i = 0; i < idle.size(); ++i)
    if (wide(idle[i]) * 100 >= part.idle_ns &&
        idle[i] > 0)  // the wall's table has the small ones too
      finding.arithmetic.push_back(
          say(facts, "{} [per step]: {}",
              {ns(facts.per_step(idle[i])), text(cause_text(static_cast<IdleCause>(i)))}));
  const Gap* longest = found.longest;
  if (longest && longest->next_work != kNone<SliceId>)
    finding.evidence.push_back(
        {longest->next_work, say("the longest gap, {}, ends with {}",
                                 {ns(longest->end_ns - longest->start_ns),
                                  kernel(facts.trace->name(longest->next_work))})});
  finding.try_next = {advice(cause, *facts.trace)};
  add_first_screen(cause, *facts.trace, finding);
  if (cause == IdleCause::kHostLate || cause == IdleCause::kAfterSync) {
    const std::vector<HostShare>& shares = host_late_shares(facts);
    add_host_evidence(facts, shares, finding);
    if (const HostShare* launch = graph_launch_in(facts, shares))
      tell_graph_launch(facts, *launch, finding);
  }
  // Nothing is to be done, and nothing would be gained.
  if (cause == IdleCause::kProfiler) finding.kind = FindingKind::kTrust;
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  return finding;
}

}  // namespace

extern constinit const Rule gpu_idle_rule = {
    .id = "gpu-idle",
    .question = "where are the gaps, and why?",
    .meant_by = "utilization utilisation gap fully waste",
    .order = 40,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_gpu_idle, tell_gpu_idle>,
    .survives_cut = false,
    .is_general = true,
    .counts_edge_gap = true,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules
