// GPU memory is allocated or freed while the training loop runs: torch's cache is missed.
#include <algorithm>
#include <map>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

bool is_allocation_call(std::string_view call) {
  return call == "cudaMalloc" || call == "cudaFree" || call == "hipMalloc" || call == "hipFree" ||
         call == "cudaMallocAsync" || call == "cuMemCreate" || call == "cuMemMap" ||
         call == "cuMemUnmap" || call == "cuMemRelease" || call == "cudaHostAlloc" ||
         call == "cudaFreeHost" || call == "cudaMallocHost" || call == "hipHostMalloc";
}

}  // namespace

Outcome allocator_calls(const Facts& facts) {
  if (!facts.main_device) return NotChecked{kNeedsDevice};
  if (facts.steps.marked && facts.steps.steps.size() < 2) return NotChecked{kNeedsSteps};
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  struct Calls {
    std::uint64_t calls = 0;
    std::int64_t cpu_ns = 0;
    SliceId longest = kNone<SliceId>;
  };
  std::map<std::string, Calls> by_name;
  std::uint64_t calls = 0;
  std::int64_t cpu_ns = 0, idle_ns = 0;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (!is_api_call(trace.kind(id)) || !inside(cpu_windows, trace.start_ns(id)) ||
        !is_allocation_call(trace.name(id)))
      continue;
    Calls& entry = by_name[std::string(trace.name(id))];
    ++entry.calls;
    entry.cpu_ns += trace.dur_ns(id);
    if (entry.longest == kNone<SliceId> || trace.dur_ns(id) > trace.dur_ns(entry.longest))
      entry.longest = id;
    ++calls;
    cpu_ns += trace.dur_ns(id);
    const auto busy = facts.device().timeline.time_within(trace.start_ns(id), trace.end_ns(id));
    idle_ns += trace.dur_ns(id) - busy[0] - busy[1] - busy[2];
  }
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  if (calls == 0 || share_of(cpu_ns, wall_ns) < 0.01) return Quiet{};
  // The first calls fill the cache; without steps only a habit tells them from a storm.
  if (!facts.steps.marked && calls < 20) return NotChecked{kNeedsSteps};
  Finding finding;
  finding.verdict = say(
      "Memory is allocated or freed at the driver while the loop runs: {} calls in {} steps, {} of "
      "CPU time per step.",
      {count(calls), count(facts.steady.size()), ns(facts.per_step(cpu_ns))});
  finding.at_stake_ns = facts.per_step(idle_ns);
  finding.at_stake_ratio = share_of(idle_ns, wall_ns);
  finding.arithmetic.push_back(
      say("the GPU was idle {} per step during these calls", {ns(facts.per_step(idle_ns))}));
  if (!facts.steps.marked)
    finding.arithmetic.push_back(say("no steps are marked: calls of the start-up are among them"));
  for (const auto& [label, entry] : by_name)
    finding.evidence.push_back(
        {entry.longest, say("{} x{}: {}", {name(label), count(entry.calls), ns(entry.cpu_ns)})});
  finding.try_next = {
      "keep shapes the same from step to step, or set "
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
      "no torch.cuda.empty_cache() inside the loop; leave some memory free, so that the cache need "
      "not give back"};
  finding.confidence = facts.confidence();
  finding.sample_count = calls;
  finding.sample_noun = "call";
  return finding;
}

}  // namespace lanescope::explain::rules
