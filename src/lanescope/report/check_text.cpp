#include "lanescope/report/check_text.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/report/budget_words.h"
#include "lanescope/report/explain_screen.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/report/markdown_escape.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using explain::BudgetLine;
using explain::BudgetReport;
using explain::BudgetState;
using explain::Evidence;
using explain::Facts;

std::string evidence_text(const Facts& facts, const Evidence& evidence) {
  const std::string text = sentence_text(evidence.text);
  if (evidence.slice == kNone<SliceId>) return text;
  const Trace& trace = *facts.trace;
  return fmt::format("{} [at {}, {} long]", text,
                     format_time_ns(trace.start_ns(evidence.slice) - trace.window_start_ns()),
                     format_time_ns(trace.dur_ns(evidence.slice)));
}

std::string about(const Facts& facts) {
  std::string text = facts.steps.marked
                         ? fmt::format("{} steady {}", facts.selection.steady.size(),
                                       facts.selection.steady.size() == 1 ? "step" : "steps")
                         : "a recording without steps";
  return facts.main_device ? fmt::format("{}, device {}", text, facts.device().timeline.device)
                           : text + ", no GPU work";
}

std::string details(const BudgetLine& line) {
  return line.state == BudgetState::kMissing ? "needs " + line.missing : sentence_text(line.text);
}

std::vector<const BudgetLine*> ranked(const BudgetReport& report) {
  std::vector<const BudgetLine*> lines;
  for (const BudgetLine& each : report.lines) lines.push_back(&each);
  const auto rank = [](BudgetState state) {
    return state == BudgetState::kBroken ? 0 : state == BudgetState::kMissing ? 1 : 2;
  };
  sort_rows(lines.begin(), lines.end(), [&](const BudgetLine* a, const BudgetLine* b) {
    return rank(a->state) < rank(b->state);
  });
  return lines;
}

// What explain's first screen says: its headline, what to do first and what it gains.
std::vector<std::string> causes_text(const BudgetReport& report, bool markdown) {
  std::vector<std::string> out;
  if (!report.explanation || report.explanation->headline.pattern.empty()) return out;
  out.push_back("Why, from lanescope explain: " +
                rounded_sentence(report.explanation->headline, markdown));
  for (std::size_t i = 0; i < report.first.size(); ++i) {
    const explain::Suggestion& each = report.first[i];
    std::string verdict = rounded_sentence(each.verdict, markdown);
    if (verdict.ends_with('.')) verdict.pop_back();
    std::string text = fmt::format("{}. {}", i + 1, verdict);
    if (const std::string gain = gain_text(each); !gain.empty()) text += ": " + gain;
    if (const std::string action = action_text(each, markdown); !action.empty())
      text += ". " + action;
    out.push_back(std::move(text));
  }
  if (std::string text = together_text(*report.explanation, report.first); !text.empty())
    out.push_back(std::move(text));
  return out;
}

std::string markdown(const Facts& facts, const BudgetReport& report, const CheckOptions& options) {
  std::string out =
      fmt::format("# {}\n\n{} ({}) against {}\n\n| | limit | found |\n|---|---|---|\n",
                  budget_result(report.lines.size(), report.broken, report.missing),
                  markdown_code(one_line(options.trace)), about(facts),
                  markdown_code(one_line(options.budget)));
  for (const BudgetLine* line : ranked(report)) {
    std::string found = markdown_escaped(details(*line));
    for (const Evidence& each : line->evidence)
      found.append("<br>").append(markdown_escaped(evidence_text(facts, each)));
    out += fmt::format("| {} | {} | {} |\n", budget_label(line->state), line->key, found);
  }
  for (const std::string& each : causes_text(report, true)) out += fmt::format("\n{}\n", each);
  return out;
}

}  // namespace

std::string check_text(const Facts& facts, const BudgetReport& report,
                       const CheckOptions& options) {
  if (options.markdown) return markdown(facts, report, options);
  std::string out = budget_result(report.lines.size(), report.broken, report.missing) + '\n';
  out += fmt::format("  {} ({}) against {}\n\n", one_line(options.trace), about(facts),
                     one_line(options.budget));
  const auto is_quiet_rule = [](const BudgetLine& line) {
    return line.state == BudgetState::kKept && !line.has_value;
  };
  std::string quiet;
  for (const BudgetLine& line : report.lines)
    if (is_quiet_rule(line)) quiet += (quiet.empty() ? "" : ", ") + line.key;
  for (const BudgetLine* line : ranked(report)) {
    if (is_quiet_rule(*line)) continue;
    const std::string first =
        fmt::format("{} {}  ", pad_right(budget_label(line->state), 7), pad_right(line->key, 21));
    out += wrapped(first, details(*line));
    for (const Evidence& each : line->evidence)
      out += wrapped("          > ", evidence_text(facts, each));
  }
  if (!quiet.empty())
    out += wrapped(fmt::format("kept    {}  ", pad_right("rules", 21)), "quiet: " + quiet);
  const auto causes = causes_text(report, false);
  for (std::size_t i = 0; i < causes.size(); ++i)
    out += (i == 0 ? "\n" : "") + wrapped("", causes[i]);
  return out;
}

std::string check_json(const Facts& facts, const BudgetReport& report,
                       const CheckOptions& options) {
  JsonWriter json("check");
  json.boolean("kept", report.kept()).text("trace", options.trace).text("budget", options.budget);
  json.boolean("steps_are_marked", facts.steps.marked);
  json.integer("step_count", facts.selection.steady.size());
  json.integer("broken_count", report.broken).integer("missing_count", report.missing);
  json.begin_array("lines");
  for (const BudgetLine& line : report.lines) {
    json.begin_object().text("key", line.key).text("state", budget_state_name(line.state));
    if (line.has_value) {
      json.text("unit", line.unit).real("value", line.value).real("limit", line.limit);
      json.boolean("at_most", line.at_most);
    }
    json.text("text", sentence_text(line.text));
    if (line.state == BudgetState::kMissing) json.text("missing", line.missing);
    json.begin_array("evidence");
    for (const Evidence& each : line.evidence) {
      json.begin_object().text("text", sentence_text(each.text));
      if (each.slice != kNone<SliceId>) {
        json.integer("start_ns", facts.trace->start_ns(each.slice));
        json.integer("dur_ns", facts.trace->dur_ns(each.slice));
        json.integer("event_index", facts.trace->slices().event_index[raw(each.slice)]);
      }
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
  if (report.explanation) json.text("headline", sentence_text(report.explanation->headline));
  json.begin_array("causes");
  for (const explain::Suggestion& each : report.first) {
    explain::Sentence action = each.action;
    if (!each.place.pattern.empty()) {
      append(action, explain::say(" ("));
      append(action, each.place);
      append(action, explain::say(")"));
    }
    json.begin_object().text("rule", report.explanation->findings[each.finding].rule);
    json.text("verdict", sentence_text(each.verdict)).text("action", sentence_text(action));
    json.integer("at_stake_ns", each.gain_ns).real("at_stake_ratio", each.gain_ratio);
    json.boolean("gain_is_predicted", each.is_predicted);
    json.integer("gain_error_ns", each.error_ns).end_object();
  }
  return json.end_array().take();
}

}  // namespace lanescope::report
