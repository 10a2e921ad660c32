#include "lanescope/explain/rules/calls_with_work.h"

#include "lanescope/explain/rules/device_time.h"

namespace lanescope::explain::rules {

Savings work_in_calls(const Facts& facts, const std::unordered_set<std::uint32_t>& calls) {
  Savings found;
  for (const analysis::DeviceWork* work : steady_work(facts)) {
    SliceId op = facts.links.op_of[raw(work->slice)];
    while (op != kNone<SliceId> && !calls.contains(raw(op))) op = facts.nesting.parent[raw(op)];
    if (op != kNone<SliceId>)
      found.add(work->slice, work->start_ns, work->end_ns, work->end_ns - work->start_ns);
  }
  found.finish();
  return found;
}

void rate_calls(const Facts& facts, const Savings& work, Finding& finding) {
  finding.at_stake_ns = facts.per_step(work.saved_ns());
  finding.at_stake_ratio = wall_share(facts, work.saved_ns());
  finding.confidence = facts.confidence();
  finding.sample_count = work.calls();
  finding.sample_noun = "kernel";
}

}  // namespace lanescope::explain::rules
