#include "lanescope/explain/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "lanescope/explain/predicted_gains.h"

namespace lanescope::explain {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kTimeUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
// As lanescope's tables write sizes: steps of 1024, whichever way the unit is spelled.
constexpr Unit kByteUnits[] = {{"B", 1},
                               {"KB", 1024},
                               {"KiB", 1024},
                               {"MB", 1048576},
                               {"MiB", 1048576},
                               {"GB", 1073741824},
                               {"GiB", 1073741824},
                               {"TB", 1099511627776},
                               {"TiB", 1099511627776}};
constexpr double kMost = 9.0e15;  // whole numbers are exact in a double up to here

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::string expected(const Measure& measure) {
  const std::string share = measure.has_share ? " or a share of the wall, such as \"5 %\"" : "";
  switch (measure.unit) {
    case MeasureUnit::kTime:
      return fmt::format("a time with ns, us, ms or s, such as \"12 ms\"{}", share);
    case MeasureUnit::kBytes:
      return "a size with B, KiB, MiB, GiB or TiB, such as \"2 GiB\"";
    case MeasureUnit::kCount:
      return "a number without a unit, such as 120";
  }
  return {};
}

const Unit* find_unit(const Measure& measure, std::string_view name) {
  const auto in = [&](const auto& units) -> const Unit* {
    for (const Unit& each : units)
      if (each.name == name) return &each;
    return nullptr;
  };
  if (measure.unit == MeasureUnit::kTime) return in(kTimeUnits);
  if (measure.unit == MeasureUnit::kBytes) return in(kByteUnits);
  static constexpr Unit kPlain{"", 1};
  return name.empty() ? &kPlain : nullptr;
}

Value value_of(const Measure& measure, double value) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::min(value, kMost)));
  switch (measure.unit) {
    case MeasureUnit::kTime:
      return ns(whole);
    case MeasureUnit::kBytes:
      return bytes(whole);
    case MeasureUnit::kCount:
      break;
  }
  if (std::abs(value - std::round(value)) < 1e-9) return count(static_cast<std::uint64_t>(whole));
  return text(fmt::format("{:.2f}", value));
}

Value share_of(double share) {
  Value value = ratio(0, 1);
  value.real = share;
  return value;
}

const char* unit_name(const Limit& limit) {
  if (limit.is_share) return "ratio";
  switch (limit.measure->unit) {
    case MeasureUnit::kTime:
      return "ns";
    case MeasureUnit::kBytes:
      return "bytes";
    case MeasureUnit::kCount:
      return "count";
  }
  return "";
}

BudgetLine missing_line(std::string key, std::string missing) {
  BudgetLine line;
  line.key = std::move(key);
  line.state = BudgetState::kMissing;
  line.text = say("this trace does not show it");
  line.missing = std::move(missing);
  return line;
}

BudgetLine check_limit(const Facts& facts, const Limit& limit, bool per_recording) {
  const Measure& measure = *limit.measure;
  const std::string_view key = measure.key;
  const bool of_steps = key != "peak_memory" && key != "peak_reserved" && key != "steps";
  if (of_steps && !facts.steps.marked && !per_recording)
    return missing_line(measure.key,
                        "steps (call prof.step() at the end of each iteration; for a program "
                        "without steps write per = \"recording\")");
  if (of_steps && facts.steps.marked && per_recording)
    return missing_line(measure.key,
                        "a recording without steps (this one marks them: write per = \"step\")");
  const Measured measured = compute_measure(facts, measure);
  if (const auto* no = std::get_if<Unmeasured>(&measured))
    return missing_line(measure.key, no->missing);
  const auto& value = std::get<MeasuredValue>(measured);

  BudgetLine line;
  line.key = measure.key;
  line.has_value = true;
  line.at_most = limit.at_most;
  line.limit = limit.value;
  line.unit = unit_name(limit);
  // Value and limit as a double differ from the exact ones by less than one in 10^15.
  line.value = value.real();
  if (limit.is_share) {
    const auto wall = static_cast<double>(facts.wall.partition.wall_ns);
    line.value = wall <= 0 ? 0 : static_cast<double>(value.total) / wall;
  }
  const bool kept = limit.at_most ? line.value <= limit.value : line.value >= limit.value;
  line.state = kept ? BudgetState::kKept : BudgetState::kBroken;
  const char* const per = measure.per_step && facts.steps.marked ? " per step" : "";
  const char* const bound = limit.at_most ? "at most" : "at least";
  if (limit.is_share)
    line.text = say("{} of {}{}, {} {} allowed",
                    {share_of(line.value), ns(facts.per_step(facts.wall.partition.wall_ns)),
                     text(per), text(bound), share_of(limit.value)});
  else
    line.text = say("{}{}, {} {} allowed", {value_of(measure, line.value), text(per), text(bound),
                                            value_of(measure, limit.value)});
  if (!kept) line.evidence = measure_evidence(facts, measure);
  return line;
}

std::uint64_t lost_count(const Trace& trace) {
  std::uint64_t lost = 0;
  for (std::size_t i = 0; i < kImportIssueCount; ++i) {
    const auto issue = static_cast<ImportIssue>(i);
    if (import_issue_info(issue).severity == Severity::kLost)
      lost += trace.import_stats()[issue].count;
  }
  return lost;
}

BudgetLine rule_line(const std::string& id, const Explanation& explanation) {
  BudgetLine line;
  line.key = id;
  line.text = say("does not fire");
  for (const RuleRun& run : explanation.runs)
    if (run.id == id && run.state == RuleRun::State::kNotChecked)
      return missing_line(id, run.missing);
  for (const Finding& finding : explanation.findings) {
    if (finding.rule != id) continue;
    line.state = BudgetState::kBroken;
    line.text = finding.verdict;
    line.evidence = finding.evidence;
    if (line.evidence.size() > 3) line.evidence.resize(3);
  }
  return line;
}

// Without the profiler another limit may hold, and the words of a finding then say so.
void use_words_of(const Explanation& whole, std::vector<BudgetLine>& lines) {
  for (BudgetLine& line : lines)
    for (const Finding& finding : whole.findings)
      if (line.state == BudgetState::kBroken && finding.rule == line.key)
        line.text = finding.verdict;
}

}  // namespace

const char* budget_state_name(BudgetState state) {
  switch (state) {
    case BudgetState::kKept:
      return "kept";
    case BudgetState::kBroken:
      return "broken";
    case BudgetState::kMissing:
      return "missing";
  }
  return "";
}

Result<Limit> parse_limit(const Measure& measure, bool at_most, std::string_view text) {
  const Error wrong{Errc::kInvalidArgument, fmt::format("{} expects {}; found '{}'", measure.key,
                                                        expected(measure), text.substr(0, 100))};
  std::string_view rest = trimmed(text);
  double number = 0;
  const auto [end, failed] =
      std::from_chars(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
  if (failed != std::errc() || !std::isfinite(number) || number < 0) return wrong;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  rest = trimmed(rest);
  Limit limit{&measure, at_most, false, 0, std::string(text), 0};
  if (rest == "%" && measure.has_share) {
    if (number > 100) return wrong;
    limit.is_share = true;
    limit.value = number / 100;
    return limit;
  }
  const Unit* unit = find_unit(measure, rest);
  if (unit == nullptr || number * unit->factor > kMost) return wrong;
  limit.value = number * unit->factor;
  return limit;
}

Result<std::unique_ptr<Facts>> facts_of_explain(const Facts& facts) {
  if (facts.selection.one_chosen) return std::unique_ptr<Facts>();
  LANESCOPE_TRY(const analysis::StepSelection selection, select_steps_of(facts, {}));
  if (selection.steady == facts.selection.steady) return std::unique_ptr<Facts>();
  LANESCOPE_TRY(Facts own, gather_facts(*facts.trace));
  return std::make_unique<Facts>(std::move(own));
}

Result<BudgetReport> check_budget(const Facts& facts, const Budget& budget) {
  BudgetReport report;
  if (const std::uint64_t lost = lost_count(*facts.trace); lost > 0 && !budget.allow_damage)
    report.lines.push_back(missing_line(
        "damage", fmt::format("the whole recording: {} of the file could not be read (lanescope "
                              "info lists it); allow_damage = true checks what is left",
                              lost == 1 ? "one place" : fmt::format("{} places", lost))));
  for (const Limit& limit : budget.limits)
    report.lines.push_back(check_limit(facts, limit, budget.per_recording));
  const auto is_broken = [&] {
    return std::any_of(report.lines.begin(), report.lines.end(),
                       [](const BudgetLine& line) { return line.state == BudgetState::kBroken; });
  };
  if (!budget.quiet_rules.empty() || is_broken()) {
    LANESCOPE_TRY(report.own_facts, facts_of_explain(facts));
    const Facts& explained = report.own_facts ? *report.own_facts : facts;
    if (!budget.quiet_rules.empty()) {
      LANESCOPE_TRY(const Explanation asked, run_rules(explained, {budget.quiet_rules, {}}));
      for (const std::string& id : budget.quiet_rules) report.lines.push_back(rule_line(id, asked));
    }
    if (is_broken()) {
      LANESCOPE_TRY(report.explanation, run_rules_and_gains(explained));
      use_words_of(*report.explanation, report.lines);
      report.first = do_first(explained, *report.explanation);
    }
  }
  for (const BudgetLine& line : report.lines) {
    report.broken += line.state == BudgetState::kBroken ? 1 : 0;
    report.missing += line.state == BudgetState::kMissing ? 1 : 0;
  }
  return report;
}

}  // namespace lanescope::explain
