// `lanescope explain`: what bounds a step, with the evidence.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>

#include "lanescope/base/memory_watch.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/cli/text.h"
#include "lanescope/cli/trace_part.h"
#include "lanescope/explain/predicted_gains.h"
#include "lanescope/explain/questions.h"
#include "lanescope/explain/run_rules.h"
#include "lanescope/record/range.h"
#include "lanescope/report/explain_html.h"
#include "lanescope/report/explain_screen.h"
#include "lanescope/report/explain_text.h"

namespace lanescope::cli {
namespace {

// All rules together take 430 bytes a slice. With less than a fifth of that in memory they end without an answer, after half a
// minute of reading the same pages (docs/measurements/index_file.md).
constexpr std::size_t kInUseOfSlice_bytes = 90;

struct ExplainFlags {
  PartFlags part;
  std::string path;
  std::optional<std::int64_t> step;
  std::string question, off, html;
  bool json = false, markdown = false, list = false, force = false, full = false,
       every_rule = false;
};

std::vector<std::string> rule_ids() {
  std::vector<std::string> ids;
  for (const explain::Rule* rule : explain::all_rules()) ids.emplace_back(rule->id);
  return ids;
}

Result<std::vector<std::string>> ids_of(const std::string& flag, const std::string& text) {
  std::vector<std::string> ids;
  const std::vector<std::string> known = rule_ids();
  for (std::size_t from = 0; from <= text.size() && !text.empty();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    const std::string id = text.substr(from, comma - from);
    if (std::find(known.begin(), known.end(), id) == known.end()) {
      const auto close = close_matches(id, known);
      return Error{
          Errc::kInvalidArgument,
          fmt::format("{} expects a rule's id (lanescope explain --list); found '{}'{}", flag, id,
                      close.empty() ? "" : "; did you mean " + joined_or(close) + "?")};
    }
    ids.push_back(id);
    from = comma + 1;
  }
  return ids;
}

// Ids, or a question in words. Empty: all rules.
Result<std::vector<std::string>> asked(const std::string& text) {
  if (!explain::is_question(text)) return ids_of("--question", text);
  explain::AskedRules rules = explain::rules_for_question(text);
  if (!rules.all && rules.ids.empty())
    return Error{Errc::kInvalidArgument,
                 fmt::format("--question: no rule has the words of '{}' in its question; lanescope "
                             "explain --list prints them all, and lanescope name tells what the "
                             "name of an event means",
                             text)};
  return std::move(rules.ids);
}

int write_page(const ExplainFlags& flags, const explain::Facts& facts,
               const explain::Explanation& explanation, Output& output) {
  RecordFunction stage("explain: page");
  report::PageOptions options;
  if (flags.path != "-") options.trace_name = std::filesystem::path(flags.path).filename().string();
  return save_text(report::explanation_html(facts, explanation, options), flags.html, output);
}

void write_screen(const ExplainFlags& flags, const explain::Facts& facts,
                  const explain::Explanation& explanation, Output& output) {
  report::ScreenOptions options;
  options.colour = output.takes_colour();
  if (output.terminal_width() > 0)
    options.width = static_cast<std::size_t>(output.terminal_width());
  options.full_hint = "lanescope explain --full " + flags.path;
  if (flags.step) options.full_hint += fmt::format(" --step {}", *flags.step);
  if (!flags.part.window.empty()) options.full_hint += " --window " + flags.part.window;
  output.write_styled(report::explanation_screen(facts, explanation, options));
}

int run_explain(const ExplainFlags& flags, Output& output) {
  if (flags.list) {
    output.write(flags.json ? report::rule_list_json() : report::rule_list_text());
    return kOk;
  }
  if (flags.path.empty()) {
    output.complain("explain: expected a trace, found none; see lanescope explain --help");
    return kUsage;
  }
  const auto only = asked(flags.question);
  const auto off = ids_of("--off", flags.off);
  for (const auto* ids : {&only, &off}) {
    if (*ids) continue;
    output.complain("explain: " + message_of(ids->error()));
    return kUsage;
  }
  if (const auto free = check_target(flags.html, flags.force); !flags.html.empty() && !free) {
    output.complain("explain: --html: " + message_of(free.error()));
    return kUsage;
  }
  int code = kOk;
  const std::optional<Trace> trace =
      open_part(flags.path, flags.part, "explain", view::Edges::kCut, output, &code);
  if (!trace) return code;

  if (only->empty() && !flags.step) expect_in_use(trace->slices().size() * kInUseOfSlice_bytes);
  RecordFunction stage("explain: facts");
  const Result<explain::Facts> facts = explain::gather_facts(*trace, {.step = flags.step});
  stage.end();
  if (!facts) {
    output.complain("explain: " + facts_message_of(facts.error()));
    return kUsage;
  }
  RecordFunction rules_stage("explain: rules and gains");
  auto explanation = explain::run_rules_and_gains(*facts, {*only, *off});
  rules_stage.end();
  if (!explanation) {
    output.complain("explain: " + message_of(explanation.error()));
    return kUsage;
  }
  if (!flags.html.empty()) return write_page(flags, *facts, *explanation, output);
  RecordFunction text_stage("explain: text");
  if (flags.json)
    output.write(report::explanation_json(*facts, *explanation));
  else if (flags.markdown || flags.full || flags.every_rule || explanation->is_answer)
    output.write(
        report::explanation_text(*facts, *explanation, {flags.markdown, flags.every_rule}));
  else
    write_screen(flags, *facts, *explanation, output);
  return kOk;
}

}  // namespace

void add_explain_command(CommandLine& line) {
  Command command = line.command("explain", "what bounds a step, and what to change first");
  const auto flags = std::make_shared<ExplainFlags>();
  command.argument("TRACE", &flags->path, kTraceArgument, {Completes::kFile}).not_required();
  const Option step =
      command.number_flag("--step", &flags->step, 0, std::numeric_limits<std::int64_t>::max(),
                          "explain this ProfilerStep only (default: all but the first)");
  add_window_flag(command, &flags->part, step);
  command.text_flag("--question", &flags->question, "ID,...",
                    "run only these rules (--list names them), or a question in words",
                    {Completes::kWords, rule_ids()});
  command.text_flag("--off", &flags->off, "ID,...", "leave these rules out",
                    {Completes::kWords, rule_ids()});
  command.switch_flag("--list", &flags->list, "the rules and the question that each answers");
  const Option full =
      command.switch_flag("--full", &flags->full,
                          "all findings with their arithmetic and evidence, not the first screen");
  const Option every_rule =
      command.switch_flag("--all", &flags->every_rule,
                          "like --full, and list the rules that found no issue or could not run");
  const Option json =
      command.switch_flag("--json", &flags->json, "JSON: docs/formats/json_output.md");
  const Option markdown = command.switch_flag("--md", &flags->markdown, "Markdown");
  const Option html = command.text_flag("--html", &flags->html, "OUT.html",
                                        "write one page that needs nothing else: verdicts, bars, "
                                        "pictures of the evidence; - prints it",
                                        {Completes::kFile});
  command.switch_flag("--force", &flags->force, "overwrite OUT.html").needs(html);
  json.excludes(markdown).excludes(html).excludes(every_rule).excludes(full);
  html.excludes(markdown).excludes(every_rule).excludes(full);
  command.epilogue(R"(Examples:
  lanescope explain trace.json.gz                            one screen: verdict, wall, what to do first
  lanescope explain --full trace.json.gz                     every finding, with arithmetic and evidence
  lanescope explain trace.json.gz --step 12                  one step
  lanescope explain trace.json.gz --question host-sync
  lanescope explain trace.json.gz --question "why is the first step slow?"
  lanescope explain trace.json.gz --question "which sync should not be there?"
  lanescope explain trace.json.gz --html why.html            a page to look at, to print, to send
  lanescope explain --list

Each rule has a page in docs/rules/; the numbers are defined in docs/definitions.md.
)");
  command.runs([flags](Output& output) -> int { return run_explain(*flags, output); });
}

}  // namespace lanescope::cli
