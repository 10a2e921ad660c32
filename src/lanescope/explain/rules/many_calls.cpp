// One operator is called so often that its calls are what the GPU waits for.
#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "lanescope/explain/owner_counts.h"
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

struct CalledOperator {
  std::string_view name;
  std::uint64_t calls = 0;
  std::int64_t idle_ns = 0;  // the call with most of it left out: a first call is no habit
  std::int64_t most_ns = 0;
  SliceId longest = kNone<SliceId>;
};

// Calls of operators in the steady steps, and the GPU's waits for the CPU inside them. Empty: none was called so often.
std::unordered_map<std::uint32_t, CalledOperator> operators_by_name(const Facts& facts,
                                                                    std::uint64_t least_calls) {
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  std::unordered_map<std::uint32_t, CalledOperator> by_name;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || !inside(cpu_windows, trace.start_ns(id)))
      continue;
    CalledOperator& entry = by_name[raw(trace.slices().name[i])];
    ++entry.calls;
    if (entry.longest == kNone<SliceId> || trace.dur_ns(id) > trace.dur_ns(entry.longest))
      entry.longest = id;
  }
  if (std::none_of(by_name.begin(), by_name.end(),
                   [&](const auto& each) { return each.second.calls >= least_calls; }))
    return {};
  std::unordered_map<std::uint32_t, std::int64_t> idle_in_call;  // by raw operator slice
  analysis::HostReader host(*facts.host);
  for (const HostStretch& stretch : host_late_stretches(facts))
    host.visit(stretch.thread, stretch.start_ns, stretch.end_ns,
               [&](SliceId slice, std::int64_t from, std::int64_t to) {
                 const SliceId op = operator_of(facts, slice);
                 if (op != kNone<SliceId>) idle_in_call[raw(op)] += to - from;
               });
  for (const auto& [call, idle_ns] : idle_in_call) {
    CalledOperator& entry = by_name[raw(trace.slices().name[call])];
    entry.idle_ns += idle_ns;
    entry.most_ns = std::max(entry.most_ns, idle_ns);
  }
  for (auto& [label, entry] : by_name) {
    entry.name = trace.text(StringId{label});
    entry.idle_ns -= entry.most_ns;
  }
  return by_name;
}

std::optional<CalledOperator> measure_many_calls(const Facts& facts) {
  const std::uint64_t least_calls = 200 * step_count(facts);
  std::optional<CalledOperator> worst;
  for (const auto& [label, entry] : operators_by_name(facts, least_calls)) {
    if (entry.calls < least_calls || entry.longest == kNone<SliceId>) continue;
    if (!worst || entry.idle_ns > worst->idle_ns ||
        (entry.idle_ns == worst->idle_ns && entry.name < worst->name))
      worst = entry;
  }
  if (worst && share_of(worst->idle_ns, facts.wall.partition.wall_ns) < 0.1) return std::nullopt;
  return worst;
}

Finding tell_many_calls(const Facts& facts, const CalledOperator& worst) {
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  finding.kind = FindingKind::kWhere;
  finding.verdict = say(facts,
                        "{} is called {} times [per step], and the GPU waits {} [per step] ({}) "
                        "while the CPU runs it.",
                        {name(worst.name), count(worst.calls / facts.selection.steady.size()),
                         ns(facts.per_step(worst.idle_ns)), ratio(worst.idle_ns, wall_ns)});
  finding.at_stake_ns = facts.per_step(worst.idle_ns);
  finding.at_stake_ratio = share_of(worst.idle_ns, wall_ns);
  finding.evidence.push_back({worst.longest, say("its longest call")});
  finding.try_next = {
      "make one call over a batch or a list instead of many: stack the inputs, use "
      "torch._foreach_* or torch.compile"};
  finding.confidence = facts.confidence();
  finding.sample_count = worst.calls;
  finding.sample_noun = "call";
  return finding;
}

}  // namespace

extern constinit const Rule many_calls_rule = {
    .id = "many-calls",
    .question = "is one operator called so often that the calls themselves take the time?",
    .order = 120,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_many_calls, tell_many_calls>,
    .is_regression = true,
};

}  // namespace lanescope::explain::rules
