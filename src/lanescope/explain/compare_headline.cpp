#include "lanescope/explain/compare_headline.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/base/wide.h"
#include "lanescope/explain/compare_reasons.h"

namespace lanescope::explain {

using analysis::IdleCause;

namespace {

// A change of time with its sign: "+1.200ms".
Sentence change(std::int64_t delta_ns) {
  return say(delta_ns < 0 ? "-{}" : "+{}", {ns(std::llabs(delta_ns))});
}

// Moves the reason's words.
void append_reason(Reason& reason, bool is_first, Sentence& to) {
  to.pattern += is_first ? ": " : ", ";
  append(to, change(reason.delta_ns));
  to.pattern += " ";
  append(to, std::exchange(reason.text, {}));
}

// Up to three largest reasons in the direction of the step's change, and the largest against it.
void append_reasons(const Comparison& c, std::int64_t delta_ns, Sentence& to) {
  std::size_t named = 0;
  std::int64_t explained = 0;
  bool against = false;
  std::vector<Reason> reasons = reasons_of(c);
  for (Reason& each : reasons) {
    const bool with = (each.delta_ns > 0) == (delta_ns > 0);
    if (wide(std::llabs(each.delta_ns)) * 10 < std::llabs(delta_ns) || named == 3) break;
    if (with && wide(std::llabs(explained)) * 20 >= wide(std::llabs(delta_ns)) * 19) continue;
    if (!with && against) continue;
    against |= !with;
    if (with) explained += each.delta_ns;
    append_reason(each, named++ == 0, to);
  }
  // What changed, though its effects cancel each other.
  for (Reason& each : reasons)
    if (each.hidden_ns > 0 && !each.text.pattern.empty() &&
        wide(each.hidden_ns) * 10 >=
            wide(std::max<std::int64_t>(std::llabs(delta_ns), compare_wall_ns(c, true))))
      append_reason(each, named++ == 0, to);
}

// The largest reasons for and against, where they cancel each other: a twentieth of the wall or
// more, and more than the variation. False: there are none.
bool append_opposite_reasons(const Comparison& c, Sentence& to) {
  if (c.scope != CompareScope::kSteps && c.scope != CompareScope::kRecordings) return false;
  const std::int64_t least = std::max(compare_noise_ns(c), compare_wall_ns(c, true) / 20);
  std::size_t named = 0;
  for (Reason& each : reasons_of(c)) {
    if (std::max<std::int64_t>(std::llabs(each.delta_ns), each.hidden_ns) <= least || named == 3)
      continue;
    append_reason(each, named++ == 0, to);
  }
  return named > 0;
}

Sentence few_steps(const StepSpread& steps) {
  if (steps.count == 1) return say("1 step of {}", {ns(steps.median_ns)});
  return say("{} steps of {} to {}",
             {count(steps.count), ns(steps.shortest_ns), ns(steps.longest_ns)});
}

Sentence spread_sentence(const Comparison& c) {
  if (c.scope == CompareScope::kRecordings)
    return say(". Uncertain: one recording on each side does not show how much is chance.");
  if (c.a_steps.count < 3 || c.b_steps.count < 3) {
    Sentence out = say(". Uncertain: A has ");
    append(out, few_steps(c.a_steps));
    append(out, say(", B "));
    append(out, few_steps(c.b_steps));
    append(out, say(": too few to show how much steps vary."));
    return out;
  }
  return say(". The medians are {} and {} over {} and {} steps, with a spread of {} and {}.",
             {ns(c.a_steps.median_ns), ns(c.b_steps.median_ns), count(c.a_steps.count),
              count(c.b_steps.count), ns(c.a_steps.spread_ns), ns(c.b_steps.spread_ns)});
}

std::string unit_of(const Comparison& c) {
  if (c.scope == CompareScope::kRecordings) return "recording";
  return c.scope == CompareScope::kCpu ? "CPU step" : "step";
}

// Steps of one are found, of the other found in another way or marked, and they differ in size.
Sentence other_units(const Comparison& c) {
  const bool a = c.a->steps.found.has_value(), b = c.b->steps.found.has_value();
  Sentence out =
      a && b ? say("The traces mark no steps, and what was found as a step is not the same in both")
             : say("{} marks no steps, and what was found as a step in it is not the same as in {}",
                   {text(a ? "A" : "B"), text(a ? "B" : "A")});
  append(out, say(": in A "));
  append(out, step_unit(*c.a));
  append(out, say(", in B "));
  append(out, step_unit(*c.b));
  append(out,
         say(". So the time of a step cannot be compared; what can be: the time of a call, "
             "{}. To compare steps, mark them with prof.step() in both programs.",
             {text(c.scope == CompareScope::kCpu ? "operator by operator" : "kernel by kernel")}));
  return out;
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
  if (c.units == StepUnits::kOther) return other_units(c);
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

// The walls agree, or differ by less than they vary. Their parts may differ all the same, and steps
// that vary much may hide a difference.
Sentence within_variation(const Comparison& c, std::int64_t delta_ns) {
  const std::int64_t median_ns = c.b_steps.median_ns - c.a_steps.median_ns;
  Sentence out =
      say("A {} takes about as long in B as in A, but its parts differ", {text(unit_of(c))});
  if (append_opposite_reasons(c, out))
    out.pattern += "; ";
  else if (wide(std::llabs(median_ns)) * 50 <= c.a_steps.median_ns)
    out = say("No difference that the steps' own variation would not explain: ");
  else
    out = say("The difference may be chance, because the steps vary by as much: ");
  append(out, change(median_ns));
  append(out, say(" in the median of a {}, ", {text(unit_of(c))}));
  append(out, change(delta_ns));
  append(out, say(" on average"));
  append(out, spread_sentence(c));
  return out;
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

Sentence step_unit(const Facts& facts) {
  const auto& found = facts.steps.found;
  if (!found) return say("what prof.step() marks");
  switch (found->kind) {
    case analysis::IterationMark::kRangeEnd:
      return found->owner.empty() ? say("one {}", {name(found->mark)})
                                  : say("{} x {}", {text(found->owner), name(found->mark)});
    case analysis::IterationMark::kWait:
      if (found->owner.empty()) return say("{} x {}", {count(found->waits), name(found->mark)});
      return say("{} x {} in {}", {count(found->waits), name(found->mark), name(found->owner)});
    case analysis::IterationMark::kRangeStart:
      break;
  }
  return found->mark.starts_with("round of ") ? say("one {}", {name(found->mark)})
                                              : say("from one {} to the next", {name(found->mark)});
}

Sentence compare_headline(const Comparison& c) {
  const std::int64_t a = compare_wall_ns(c, true), b = compare_wall_ns(c, false), delta = b - a;
  switch (c.verdict) {
    case CompareVerdict::kEqual:
      return say("No difference: every number of A and B is the same.");
    case CompareVerdict::kNotCompared:
      return not_compared(c);
    case CompareVerdict::kWithin:
      return within_variation(c, delta);
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
    out = say("B's {} takes as long as A's on average, {}", {text(unit_of(c)), ns(a)});
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
