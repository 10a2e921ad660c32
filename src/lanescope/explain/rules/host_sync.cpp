// The program waits for the GPU in the middle of a step: .item(), .cpu(), synchronize(), copies.
#include <algorithm>
#include <map>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::IdleCause;
using analysis::IdlePart;

namespace {

// The outermost aten operator around a call: aten::item rather than aten::_local_scalar_dense. The
// call's own name when it was made outside any operator.
std::string asked_by(const Facts& facts, SliceId call) {
  std::string found(facts.trace->name(call));
  for (SliceId up = facts.links.op_of[raw(call)]; up != kNone<SliceId>;
       up = facts.nesting.parent[raw(up)])
    if (facts.trace->kind(up) == CategoryKind::kCpuOp) found = facts.trace->name(up);
  return found;
}

struct Group {
  std::uint64_t calls = 0;
  std::int64_t waited_ns = 0, idle_ns = 0, longest_ns = -1;
  SliceId longest = kNone<SliceId>;
};

}  // namespace

Outcome host_sync(const Facts& facts) {
  if (!facts.main_device) return NotChecked{kNeedsDevice};
  if (!has_launches(facts)) return NotChecked{kNeedsLaunches};
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  std::int64_t last_launch_ns = 0;
  std::vector<SliceId> calls;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (!is_api_call(trace.kind(id))) continue;
    if (!facts.links.launched_by(id).empty())
      last_launch_ns = std::max(last_launch_ns, trace.start_ns(id));
    if (analysis::is_blocking_call(trace, facts.links, id)) calls.push_back(id);
  }
  std::map<std::string, Group> groups;
  std::int64_t waited_ns = 0;
  std::uint64_t found = 0;
  for (const SliceId call : calls) {
    // A wait after the last launch ends the recording, or is all that a last step does.
    if (!inside(cpu_windows, trace.start_ns(call)) || trace.start_ns(call) > last_launch_ns)
      continue;
    Group& group = groups[asked_by(facts, call)];
    ++group.calls;
    ++found;
    group.waited_ns += trace.dur_ns(call);
    waited_ns += trace.dur_ns(call);
    if (trace.dur_ns(call) > group.longest_ns) {
      group.longest_ns = trace.dur_ns(call);
      group.longest = call;
    }
  }
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  std::int64_t idle_ns = 0, at_stake = 0;
  for (const IdlePart& part : facts.device().gaps.parts) {
    if (part.cause != IdleCause::kAfterSync || !inside(facts.steady_windows, part.start_ns))
      continue;
    const auto group = groups.find(asked_by(facts, part.blame));
    if (group == groups.end()) continue;
    const std::int64_t length = part.end_ns - part.start_ns;
    idle_ns += length;
    group->second.idle_ns += length;
    at_stake += std::min(length, trace.dur_ns(part.blame));
  }
  if (found == 0 || share_of(at_stake, wall_ns) < 0.01) return Quiet{};

  Finding finding;
  const auto steps = static_cast<std::uint64_t>(facts.steady.size());
  finding.verdict =
      say("The CPU waits for the GPU in the middle of the work: {} waits in {} {}, after which the "
          "GPU stood idle {} per step ({}).",
          {count(found), count(steps),
           text(!facts.steps.marked ? "recording"
                : steps == 1        ? "step"
                                    : "steps"),
           ns(facts.per_step(idle_ns)), ratio(idle_ns, wall_ns)});
  finding.at_stake_ns = facts.per_step(at_stake);
  finding.at_stake_ratio = share_of(at_stake, wall_ns);
  finding.arithmetic.push_back(say(
      "each of these gaps counts for at most as long as the wait before it, because the CPU's "
      "other work stays: {} per step of {} idle; all waits together take {}",
      {ns(facts.per_step(at_stake)), ns(facts.per_step(idle_ns)), ns(facts.per_step(waited_ns))}));
  std::vector<std::pair<std::string, Group>> ranked(groups.begin(), groups.end());
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.second.idle_ns != b.second.idle_ns ? a.second.idle_ns > b.second.idle_ns
                                                : a.second.waited_ns > b.second.waited_ns;
  });
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i)
    finding.evidence.push_back(
        {ranked[i].second.longest, say("{} x{}: waited {} per step, GPU idle afterwards {}",
                                       {name(ranked[i].first), count(ranked[i].second.calls),
                                        ns(facts.per_step(ranked[i].second.waited_ns)),
                                        ns(facts.per_step(ranked[i].second.idle_ns))})});
  finding.try_next = {
      "keep values on the GPU; read a loss or a metric every n steps in place of every step",
      "for .item(), .cpu(), nonzero(), masks and prints of tensors: move them behind the last "
      "launch "
      "of the step"};
  finding.confidence = facts.confidence();
  finding.sample_count = found;
  finding.sample_noun = "wait";
  return finding;
}

}  // namespace lanescope::explain::rules
