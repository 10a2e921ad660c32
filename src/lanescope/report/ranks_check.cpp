#include "lanescope/report/ranks_check.h"

#include <fmt/format.h>

#include <cmath>

#include "lanescope/report/budget_words.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/report/ranks_words.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using explain::BudgetState;
using ranks::JobBudgetLine;
using ranks::JobBudgetReport;

constexpr std::size_t kKeyWidth = 22;

std::string number_text(double value, const std::string& unit) {
  if (unit == "ratio") return fmt::format("{:.1f} %", 100 * value);
  if (unit == "ns") return format_time_ns(std::llround(value));
  return fmt::format("{:g}", value);
}

std::string found_text(const JobBudgetLine& line) {
  if (line.state == BudgetState::kMissing) return "needs " + line.missing;
  if (!line.has_value) return line.text;
  std::string text = number_text(line.value, line.unit);
  if (line.rank >= 0) text += fmt::format(" on rank {}", line.rank);
  text += line.at_most ? fmt::format(", at most {} allowed", number_text(line.limit, line.unit))
                       : fmt::format(", at least {} required", number_text(line.limit, line.unit));
  if (line.error_ns > 0)
    text += fmt::format(" (the clocks' error is {})", rounded_time(line.error_ns));
  return text;
}

}  // namespace

std::string ranks_check_text(const JobBudgetReport& report, const JobCheck& check) {
  std::string out = budget_result(report.lines.size(), report.broken, report.missing) + "\n";
  out += fmt::format("  {} against {}\n\n", one_line(check.job), one_line(check.budget));
  for (const BudgetState state : {BudgetState::kBroken, BudgetState::kMissing, BudgetState::kKept})
    for (const JobBudgetLine& line : report.lines)
      if (line.state == state)
        out += wrapped(
            fmt::format("{}{}", pad_right(budget_label(state), 9), pad_right(line.key, kKeyWidth)),
            found_text(line));
  if (report.broken == 0) return out;
  out += "\n";
  for (const std::string& sentence : verdict_sentences(*check.verdict))
    out += wrapped("", sentence);
  return out;
}

std::string ranks_check_json(const JobBudgetReport& report, const JobCheck& check) {
  JsonWriter json("ranks check");
  json.boolean("kept", report.kept()).text("job", check.job).text("budget", check.budget);
  json.integer("broken_count", report.broken).integer("missing_count", report.missing);
  json.text("verdict", ranks::verdict_name(check.verdict->kind)).begin_array("lines");
  for (const JobBudgetLine& line : report.lines) {
    json.begin_object().text("key", line.key).text("state", budget_state_name(line.state));
    if (line.has_value) {
      json.text("unit", line.unit).real("value", line.value).real("limit", line.limit);
      json.boolean("at_most", line.at_most);
    }
    if (line.rank >= 0) json.integer("rank", line.rank);
    if (line.error_ns > 0) json.integer("clock_error_ns", line.error_ns);
    json.text("text", found_text(line)).end_object();
  }
  return json.end_array().take();
}

std::string ranks_check_csv(const JobBudgetReport& report) {
  std::string out = "key,state,unit,value,limit,at_most,rank,clock_error_ns\n";
  for (const JobBudgetLine& line : report.lines) {
    out += fmt::format("{},{}", line.key, budget_state_name(line.state));
    out += line.has_value
               ? fmt::format(",{},{},{},{:d}", line.unit, line.value, line.limit, line.at_most)
               : std::string(",,,,");
    out += line.rank >= 0 ? fmt::format(",{}", line.rank) : std::string(",");
    out += fmt::format(",{}\n", line.error_ns);
  }
  return out;
}

}  // namespace lanescope::report
