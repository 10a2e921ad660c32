#include "lanescope/explain/compare_headline.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lanescope/base/wide.h"

namespace lanescope::explain {

using analysis::IdleCause;
using analysis::KernelDiff;
using analysis::MatchKind;
using analysis::WallEffects;

namespace {

// One reason for the difference: its time and its words.
struct Reason {
  std::int64_t delta_ns = 0;
  Sentence text;
};

// A change of time with its sign: "+1.200ms".
Sentence change(std::int64_t delta_ns) {
  return say(delta_ns < 0 ? "-{}" : "+{}", {ns(std::llabs(delta_ns))});
}

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

void add_kernel_reasons(const Comparison& c, std::vector<Reason>& reasons) {
  const WallEffects& effects = c.diff.effects;
  const auto delta = [](const KernelDiff& row) { return row.delta_ns(); };
  if (const auto* row = largest(c, MatchKind::kSame, effects.per_call_ns,
                                [](const KernelDiff& each) { return each.per_call_ns; }))
    reasons.push_back({effects.per_call_ns,
                       say("per call of the same kernels (most of it {}: {} a call instead of {})",
                           {kernel(kernel_b(c, *row)), ns(mean_ns(row->b_total_ns, row->b_count)),
                            ns(mean_ns(row->a_total_ns, row->a_count))})});
  if (const auto* row = largest(c, MatchKind::kSame, effects.calls_ns,
                                [](const KernelDiff& each) { return each.count_ns; }))
    reasons.push_back(
        {effects.calls_ns,
         say(effects.calls_ns > 0 ? "from more calls of the same kernels (most of it {})"
                                  : "from fewer calls of the same kernels (most of it {})",
             {kernel(kernel_b(c, *row))})});
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
  const auto a = host_shares(*c.a, host_late_stretches(*c.a));
  const auto b = host_shares(*c.b, host_late_stretches(*c.b));
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

std::vector<Reason> reasons_of(const Comparison& c) {
  std::vector<Reason> reasons;
  add_kernel_reasons(c, reasons);
  add_idle_reasons(c, reasons);
  const WallEffects& effects = c.diff.effects;
  reasons.push_back({effects.overlap_ns,
                     say(effects.overlap_ns > 0 ? "because fewer kernels run beside each other"
                                                : "because more kernels run beside each other")});
  reasons.push_back(
      {effects.exposed_communication_ns, say("of communication with nothing computing beside it")});
  reasons.push_back(
      {effects.exposed_copy_ns, say("of copies and memsets with nothing computing beside them")});
  std::erase_if(reasons, [](const Reason& each) { return each.delta_ns == 0; });
  std::stable_sort(reasons.begin(), reasons.end(), [](const Reason& x, const Reason& y) {
    return std::llabs(x.delta_ns) > std::llabs(y.delta_ns);
  });
  return reasons;
}

// Up to three largest reasons in the direction of the step's change, and the largest against it.
void append_reasons(const Comparison& c, std::int64_t delta_ns, Sentence& to) {
  std::size_t named = 0;
  std::int64_t explained = 0;
  bool against = false;
  for (Reason& each : reasons_of(c)) {
    const bool with = (each.delta_ns > 0) == (delta_ns > 0);
    if (wide(std::llabs(each.delta_ns)) * 10 < std::llabs(delta_ns) || named == 3) break;
    if (with && wide(std::llabs(explained)) * 20 >= wide(std::llabs(delta_ns)) * 19) continue;
    if (!with && against) continue;
    against |= !with;
    if (with) explained += each.delta_ns;
    to.pattern += named++ == 0 ? ": " : ", ";
    append(to, change(each.delta_ns));
    to.pattern += " ";
    append(to, each.text);
  }
}

Sentence few_steps(const StepSpread& steps) {
  if (steps.count == 1) return say("1 step of {}", {ns(steps.median_ns)});
  return say("{} steps of {} to {}",
             {count(steps.count), ns(steps.shortest_ns), ns(steps.longest_ns)});
}

Sentence spread_sentence(const Comparison& c) {
  if (c.scope == CompareScope::kRecordings)
    return say("; one recording each, nothing tells how much of it is chance.");
  if (c.a_steps.count < 3 || c.b_steps.count < 3) {
    Sentence out = say("; ");
    append(out, few_steps(c.a_steps));
    append(out, say(" and "));
    append(out, few_steps(c.b_steps));
    append(out, say(", too few to know how much they vary."));
    return out;
  }
  return say("; medians {} and {} over {} and {} steps, spread {} and {}.",
             {ns(c.a_steps.median_ns), ns(c.b_steps.median_ns), count(c.a_steps.count),
              count(c.b_steps.count), ns(c.a_steps.spread_ns), ns(c.b_steps.spread_ns)});
}

std::string unit_of(const Comparison& c) {
  if (c.scope == CompareScope::kRecordings) return "recording";
  return c.scope == CompareScope::kCpu ? "CPU step" : "step";
}

Sentence not_compared(const Comparison& c) {
  if (has_missing_work(*c.a) || has_missing_work(*c.b))
    return say(
        "Events of {} are missing ({}), so the time of a step cannot be compared; what can "
        "be: the time of a call.",
        {text(!has_missing_work(*c.b)   ? "A"
              : !has_missing_work(*c.a) ? "B"
                                        : "both"),
         text(c.a->trace->import_stats().is_truncated() || c.b->trace->import_stats().is_truncated()
                  ? "the end of the file"
                  : "GPU work of its steps")});
  if (c.scope == CompareScope::kCalls)
    return say(
        "{} marks no steps (prof.step()), so the time of a step cannot be compared; what "
        "can be: the time of a call, kernel by kernel.",
        {text(c.a->steps.marked ? "B" : "A")});
  const bool a = c.a->main_device.has_value(), b = c.b->main_device.has_value();
  if (c.a_costs.cpu.empty() && c.b_costs.cpu.empty())
    return say("Neither trace holds operators, calls or GPU work: there is nothing to compare.");
  return say(
      "{} no GPU work and {}, so neither walls nor kernels can be compared; what can be: "
      "the CPU time of {}.",
      {text(a   ? "B holds"
            : b ? "A holds"
                : "The two traces hold"),
       text(c.a->steps.marked != c.b->steps.marked ? "only one marks steps"
                                                   : "no steps are marked"),
       text(c.a->steps.marked != c.b->steps.marked ? "a call, operator by operator"
                                                   : "operators")});
}

}  // namespace

std::int64_t compare_noise_ns(const Comparison& c) {
  const double a = static_cast<double>(c.a_steps.spread_ns);
  const double b = static_cast<double>(c.b_steps.spread_ns);
  return std::max(c.a_steps.median_ns / 100,
                  static_cast<std::int64_t>(2 * std::sqrt(a * a + b * b)));
}

std::int64_t compare_wall_ns(const Comparison& c, bool of_a) {
  const auto& costs = of_a ? c.a_costs : c.b_costs;
  return analysis::per_step_ns(
      c.scope == CompareScope::kCpu ? costs.cpu_wall_ns : costs.wall.wall_ns, costs.step_count);
}

Sentence compare_headline(const Comparison& c) {
  const std::int64_t a = compare_wall_ns(c, true), b = compare_wall_ns(c, false), delta = b - a;
  switch (c.verdict) {
    case CompareVerdict::kEqual:
      return say("No difference: every number of A and B is the same.");
    case CompareVerdict::kNotCompared:
      return not_compared(c);
    case CompareVerdict::kWithin: {
      Sentence out = say("No difference that the steps' own variation would not explain: ");
      append(out, change(c.b_steps.median_ns - c.a_steps.median_ns));
      append(out, say(" in the median of a {}, ", {text(unit_of(c))}));
      append(out, change(delta));
      append(out, say(" in the mean"));
      append(out, spread_sentence(c));
      return out;
    }
    case CompareVerdict::kSlowSteps: {
      Sentence out = say("The usual step did not change, but a few steps make the mean differ by ");
      append(out, change(delta));
      append(out, spread_sentence(c));
      return out;
    }
    case CompareVerdict::kDiffers:
    case CompareVerdict::kFewSteps:
      break;
  }
  Sentence out;
  if (delta == 0)
    out = say("B's {} takes as long as A's in the mean, {}", {text(unit_of(c)), ns(a)});
  else if (a > 0 && b / 2 >= a)
    out = say("B's {} takes {} times as long as A's: {} instead of {} (",
              {text(unit_of(c)), factor(b, a), ns(b), ns(a)});
  else
    out = say("B's {} takes {} {} than A's: {} instead of {} (",
              {text(unit_of(c)), ratio(std::llabs(delta), a), text(delta > 0 ? "longer" : "less"),
               ns(b), ns(a)});
  if (delta != 0) {
    append(out, change(delta));
    out.pattern += ")";
  }
  if (c.scope == CompareScope::kSteps || c.scope == CompareScope::kRecordings)
    append_reasons(c, delta, out);
  append(out, spread_sentence(c));
  return out;
}

const char* idle_cause_phrase(IdleCause cause) {
  switch (cause) {
    case IdleCause::kHostLate:
      return "the CPU had not launched yet";
    case IdleCause::kAfterSync:
      return "the queue was empty after a CPU wait";
    case IdleCause::kLaunchLatency:
      return "launches on their way";
    case IdleCause::kBetweenQueued:
      return "between queued work";
    case IdleCause::kWaiting:
      return "launched but waiting, unexplained";
    case IdleCause::kProfiler:
      return "the profiler's own work";
    case IdleCause::kBeforeFirstWork:
      return "before the first launch";
    case IdleCause::kAfterLastWork:
      return "nothing launched any more";
    case IdleCause::kUnknown:
      return "not in the trace, unknown";
  }
  return "";
}

const char* compare_scope_name(CompareScope scope) {
  switch (scope) {
    case CompareScope::kSteps:
      return "steps";
    case CompareScope::kRecordings:
      return "recordings";
    case CompareScope::kCalls:
      return "calls";
    case CompareScope::kCpu:
      return "cpu";
  }
  return "";
}

const char* compare_verdict_name(CompareVerdict verdict) {
  switch (verdict) {
    case CompareVerdict::kEqual:
      return "equal";
    case CompareVerdict::kWithin:
      return "within";
    case CompareVerdict::kSlowSteps:
      return "slow_steps";
    case CompareVerdict::kDiffers:
      return "differs";
    case CompareVerdict::kFewSteps:
      return "few_steps";
    case CompareVerdict::kNotCompared:
      return "not_compared";
  }
  return "";
}

}  // namespace lanescope::explain
