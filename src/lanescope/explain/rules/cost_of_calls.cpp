#include "lanescope/explain/rules/cost_of_calls.h"

#include "lanescope/explain/rules/arithmetic.h"
#include "lanescope/explain/rules/device_time.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Window;

std::int64_t cost_of_calls(const Facts& facts, const std::unordered_set<std::uint32_t>& calls) {
  const Trace& trace = *facts.trace;
  std::vector<Window> windows;
  std::int64_t own_ns = 0;
  for (const std::uint32_t call : calls) {
    const SliceId id{call};
    own_ns += trace.dur_ns(id);
    windows.push_back({trace.start_ns(id), trace.end_ns(id)});
  }
  if (!facts.main_device) return own_ns;
  std::vector<Window> works;
  for (const DeviceWork* work : steady_work(facts)) {
    SliceId op = facts.links.op_of[raw(work->slice)];
    while (op != kNone<SliceId> && !calls.contains(raw(op))) op = facts.nesting.parent[raw(op)];
    if (op != kNone<SliceId>) works.push_back({work->start_ns, work->end_ns});
  }
  // Both only inside of steady steps, so that they are never more than those.
  return total_length(within_steady(facts, works)) +
         device_idle_during(facts, within_steady(facts, windows));
}

std::int64_t cost_of_spared(const Facts& facts, const std::vector<SliceId>& calls) {
  std::unordered_set<std::uint32_t> all;
  for (const SliceId call : calls) all.insert(raw(call));
  return cost_of_calls(facts, all);
}

void rate_cost(const Facts& facts, std::int64_t cost_ns, std::uint64_t calls, Finding& finding) {
  finding.at_stake_ns = facts.per_step(cost_ns);
  finding.at_stake_ratio = share_of(cost_ns, facts.steady_wall_ns());
  finding.confidence = facts.confidence();
  finding.sample_count = calls;
  finding.sample_noun = "call";
}

}  // namespace lanescope::explain::rules
