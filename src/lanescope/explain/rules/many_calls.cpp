// One operator is called so often that its calls are what the GPU waits for.
#include <algorithm>
#include <unordered_map>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

// The operator in whose own time a moment lies: API calls belong to the operator that made them.
SliceId operator_of(const Facts& facts, SliceId slice) {
  const Trace& trace = *facts.trace;
  while (slice != kNone<SliceId> && trace.kind(slice) != CategoryKind::kCpuOp)
    slice = facts.nesting.parent[raw(slice)];
  return slice;
}

}  // namespace

Outcome many_calls(const Facts& facts) {
  if (!facts.main_device) return NotChecked{kNeedsDevice};
  if (!has_launches(facts)) return NotChecked{kNeedsLaunches};
  const Trace& trace = *facts.trace;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  const auto steps = static_cast<std::uint64_t>(facts.steady.size());
  const auto cpu_windows = facts.steady_cpu_windows();

  struct Operator {
    std::uint64_t calls = 0;
    std::int64_t idle_ns = 0;  // the call with most of it left out: a first call is no habit
    std::int64_t most_ns = 0;
    SliceId longest = kNone<SliceId>;
  };
  std::unordered_map<std::uint32_t, Operator> by_name;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || !inside(cpu_windows, trace.start_ns(id)))
      continue;
    Operator& entry = by_name[raw(trace.slices().name[i])];
    ++entry.calls;
    if (entry.longest == kNone<SliceId> || trace.dur_ns(id) > trace.dur_ns(entry.longest))
      entry.longest = id;
  }
  std::unordered_map<std::uint32_t, std::int64_t> idle_in_call;  // by raw operator slice
  for (const HostStretch& stretch : host_late_stretches(facts))
    facts.host->visit(stretch.thread, stretch.start_ns, stretch.end_ns,
                      [&](SliceId slice, std::int64_t from, std::int64_t to) {
                        const SliceId op = operator_of(facts, slice);
                        if (op != kNone<SliceId>) idle_in_call[raw(op)] += to - from;
                      });
  for (const auto& [call, idle_ns] : idle_in_call) {
    Operator& entry = by_name[raw(trace.slices().name[call])];
    entry.idle_ns += idle_ns;
    entry.most_ns = std::max(entry.most_ns, idle_ns);
  }
  for (auto& [label, entry] : by_name) entry.idle_ns -= entry.most_ns;
  const Operator* worst = nullptr;
  std::string_view worst_name;
  for (const auto& [label, entry] : by_name) {
    const std::string_view text_of = trace.text(StringId{label});
    if (entry.calls < 200 * std::max<std::uint64_t>(1, steps) || entry.longest == kNone<SliceId>)
      continue;
    if (!worst || entry.idle_ns > worst->idle_ns ||
        (entry.idle_ns == worst->idle_ns && text_of < worst_name)) {
      worst = &entry;
      worst_name = text_of;
    }
  }
  if (!worst || share_of(worst->idle_ns, wall_ns) < 0.1) return Quiet{};
  Finding finding;
  finding.kind = FindingKind::kWhere;
  finding.verdict =
      say("{} is called {} times per step, and the GPU waits {} per step ({}) while the CPU is in "
          "it.",
          {name(worst_name), count(worst->calls / steps), ns(facts.per_step(worst->idle_ns)),
           ratio(worst->idle_ns, wall_ns)});
  finding.at_stake_ns = facts.per_step(worst->idle_ns);
  finding.at_stake_ratio = share_of(worst->idle_ns, wall_ns);
  finding.evidence.push_back({worst->longest, say("the longest of them")});
  finding.try_next = {
      "one call over a batch or a list in place of many: stack the inputs, torch._foreach_*, "
      "torch.compile"};
  finding.confidence = facts.confidence();
  finding.sample_count = worst->calls;
  finding.sample_noun = "call";
  return finding;
}

}  // namespace lanescope::explain::rules
