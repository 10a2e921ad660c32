#include "lanescope/explain/compare_reasons.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"

namespace lanescope::explain {

using analysis::IdleCause;
using analysis::KernelDiff;
using analysis::MatchKind;
using analysis::WallEffects;

namespace {

// The row of that kind with the largest effect of the same sign as `delta_ns`; null: none.
template <typename Effect>
const KernelDiff* largest(const Comparison& c, MatchKind kind, std::int64_t delta_ns,
                          Effect effect) {
  const KernelDiff* best = nullptr;
  for (const KernelDiff& row : c.diff.kernels) {
    if (row.kind != kind || (effect(row) > 0) != (delta_ns > 0)) continue;
    if (best == nullptr || std::llabs(effect(row)) > std::llabs(effect(*best))) best = &row;
  }
  return best;
}

const std::string& kernel_a(const Comparison& c, const KernelDiff& row) {
  return c.a_costs.work[row.a.front()].name;
}
const std::string& kernel_b(const Comparison& c, const KernelDiff& row) {
  return c.b_costs.work[row.b.front()].name;
}

std::int64_t mean_ns(std::int64_t total_ns, std::uint64_t count) {
  return count == 0 ? 0 : total_ns / static_cast<std::int64_t>(count);
}

// Fewer but longer calls of one kernel, or more but shorter ones: two effects of one change, each
// of which says little without the other.
bool is_regrouped(const KernelDiff& row) {
  return row.kind == MatchKind::kSame && (row.count_ns > 0) != (row.per_call_ns > 0) &&
         2 * std::min(wide(std::llabs(row.count_ns)), wide(std::llabs(row.per_call_ns))) >=
             std::max(wide(std::llabs(row.count_ns)), wide(std::llabs(row.per_call_ns)));
}

// Rows of one kind of change: their sum, and the one with the largest part of it.
struct Rows {
  std::int64_t delta_ns = 0, most_ns = 0;
  const KernelDiff* most = nullptr;
  void add(const KernelDiff& row, std::int64_t part_ns) {
    delta_ns += part_ns;
    if (most && std::llabs(part_ns) <= std::llabs(most_ns)) return;
    most = &row;
    most_ns = part_ns;
  }
};

Sentence per_call_text(const Comparison& c, const KernelDiff& row) {
  return say("per call of the same kernels (most of it {}: {} a call instead of {})",
             {kernel(kernel_b(c, row)), ns(mean_ns(row.b_total_ns, row.b_count)),
              ns(mean_ns(row.a_total_ns, row.a_count))});
}

Sentence regrouped_text(const Comparison& c, const KernelDiff& row) {
  const bool fewer = row.count_ns < 0;
  const auto calls = [](std::uint64_t count_of, std::int64_t steps) {
    return count(count_of / static_cast<std::uint64_t>(std::max<std::int64_t>(1, steps)));
  };
  return say(fewer ? "from fewer but longer calls of the same kernels (most of it {}: {} of {} "
                     "instead of {} of {})"
                   : "from more but shorter calls of the same kernels (most of it {}: {} of {} "
                     "instead of {} of {})",
             {kernel(kernel_b(c, row)), calls(row.b_count, c.b_costs.step_count),
              ns(mean_ns(row.b_total_ns, row.b_count)), calls(row.a_count, c.a_costs.step_count),
              ns(mean_ns(row.a_total_ns, row.a_count))});
}

// Longer and shorter calls of different kernels do not cancel each other.
void add_same_kernels(const Comparison& c, std::vector<Reason>& reasons) {
  Rows longer, shorter, more, fewer, regrouped_fewer, regrouped_more;
  for (const KernelDiff& row : c.diff.kernels) {
    if (row.kind != MatchKind::kSame) continue;
    if (is_regrouped(row)) {
      (row.count_ns < 0 ? regrouped_fewer : regrouped_more).add(row, row.delta_ns());
      continue;
    }
    (row.per_call_ns > 0 ? longer : shorter).add(row, row.per_call_ns);
    (row.count_ns > 0 ? more : fewer).add(row, row.count_ns);
  }
  for (const Rows* rows : {&longer, &shorter})
    if (rows->most) reasons.push_back({rows->delta_ns, per_call_text(c, *rows->most)});
  for (const Rows* rows : {&more, &fewer})
    if (rows->most)
      reasons.push_back({rows->delta_ns,
                         say(rows == &more ? "from more calls of the same kernels (most of it {})"
                                           : "from fewer calls of the same kernels (most of it {})",
                             {kernel(kernel_b(c, *rows->most))})});
  for (const Rows* rows : {&regrouped_fewer, &regrouped_more})
    if (rows->most)
      reasons.push_back({rows->delta_ns, regrouped_text(c, *rows->most),
                         std::llabs(rows->most->count_ns) >= std::llabs(rows->most->per_call_ns)
                             ? std::llabs(rows->most->per_call_ns)
                             : std::llabs(rows->most->count_ns)});
}

void add_kernel_reasons(const Comparison& c, std::vector<Reason>& reasons) {
  const WallEffects& effects = c.diff.effects;
  const auto delta = [](const KernelDiff& row) { return row.delta_ns(); };
  add_same_kernels(c, reasons);
  if (const auto* row = largest(c, MatchKind::kChanged, effects.changed_ns, delta))
    reasons.push_back({effects.changed_ns,
                       say("from other kernels under the same operators (most of it {} -> {})",
                           {kernel(kernel_a(c, *row)), kernel(kernel_b(c, *row))})});
  if (const auto* row = largest(c, MatchKind::kFused, effects.fused_ns, delta)) {
    if (row->a_is_fused)
      reasons.push_back({effects.fused_ns, say("because {} of A now runs as kernels of its own",
                                               {kernel(kernel_a(c, *row))})});
    else
      reasons.push_back({effects.fused_ns, say("from fusion: {} kernels of A run as {} in B{}",
                                               {count(row->a.size()), kernel(kernel_b(c, *row)),
                                                text(row->b.size() == 1 ? "" : " and others")})});
  }
  if (const auto* row = largest(c, MatchKind::kNew, effects.new_ns, delta))
    reasons.push_back({effects.new_ns, say("from kernels that only B has (most of it {})",
                                           {kernel(kernel_b(c, *row))})});
  if (const auto* row = largest(c, MatchKind::kGone, effects.gone_ns, delta))
    reasons.push_back({effects.gone_ns, say("from kernels that only A has (most of it {})",
                                            {kernel(kernel_a(c, *row))})});
}

// What the CPU did while launches were late, and whose time changed most in the direction of
// delta_ns.
Sentence cpu_meanwhile(const Comparison& c, std::int64_t delta_ns) {
  const auto& a = host_late_shares(*c.a);
  const auto& b = host_late_shares(*c.b);
  const HostShare* best = nullptr;
  std::int64_t most = 0;
  const auto per_step = [](const HostShare& share, const analysis::StepCosts& side) {
    return analysis::per_step_ns(share.time_ns, side.step_count);
  };
  const auto in = [](const std::vector<HostShare>& shares, const HostShare& of) {
    return std::find_if(shares.begin(), shares.end(), [&](const HostShare& each) {
      return each.name == of.name && each.kind == of.kind;
    });
  };
  // The first hundred names of each side have nearly all of the time.
  const bool longer = delta_ns > 0;
  const auto& mine = longer ? b : a;
  const auto& other = longer ? a : b;
  for (std::size_t i = 0; i < mine.size() && i < 100; ++i) {
    const auto found = in(other, mine[i]);
    std::int64_t more = per_step(mine[i], longer ? c.b_costs : c.a_costs);
    if (found != other.end()) more -= per_step(*found, longer ? c.a_costs : c.b_costs);
    if (more <= most) continue;
    most = more;
    best = &mine[i];
  }
  if (best == nullptr || most * 5 < std::llabs(delta_ns)) return {};
  Sentence text = describe(*best);
  text.pattern = "; CPU meanwhile: " + text.pattern;
  return text;
}

void add_idle_reasons(const Comparison& c, std::vector<Reason>& reasons) {
  for (std::size_t i = 0; i < analysis::kIdleCauseCount; ++i) {
    const std::int64_t delta = c.diff.effects.idle_ns[i];
    if (delta == 0) continue;
    const auto cause = static_cast<IdleCause>(i);
    const GapDiff* best = nullptr;
    for (const GapDiff& row : c.gaps) {
      if (row.cause != cause || (row.b_ns > row.a_ns) != (delta > 0)) continue;
      best = &row;  // largest first
      break;
    }
    Reason reason{delta, say("of idle GPU: {}", {text(idle_cause_phrase(cause))})};
    if (best != nullptr && !best->before.empty()) {
      append(reason.text, say(" (most before {}", {kernel(best->before)}));
      if (cause == IdleCause::kHostLate || cause == IdleCause::kAfterSync)
        append(reason.text, cpu_meanwhile(c, delta));
      reason.text.pattern += ")";
    }
    reasons.push_back(std::move(reason));
  }
}

}  // namespace

std::vector<Reason> reasons_of(const Comparison& c) {
  std::vector<Reason> reasons;
  add_kernel_reasons(c, reasons);
  add_idle_reasons(c, reasons);
  const WallEffects& effects = c.diff.effects;
  reasons.push_back({effects.overlap_ns,
                     say(effects.overlap_ns > 0 ? "because fewer kernels run at the same time"
                                                : "because more kernels run at the same time")});
  reasons.push_back(
      {effects.exposed_communication_ns, say("of communication while nothing computes")});
  reasons.push_back({effects.exposed_copy_ns, say("of copies and memsets while nothing computes")});
  std::erase_if(reasons,
                [](const Reason& each) { return each.delta_ns == 0 && each.hidden_ns == 0; });
  sort_rows(reasons.begin(), reasons.end(), [](const Reason& x, const Reason& y) {
    return std::llabs(x.delta_ns) > std::llabs(y.delta_ns);
  });
  return reasons;
}

}  // namespace lanescope::explain
