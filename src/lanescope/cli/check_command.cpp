// `lanescope check`: whether a trace keeps its budget, for CI.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>

#include "lanescope/cli/budget_file.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/record/range.h"
#include "lanescope/report/check_text.h"

namespace lanescope::cli {
namespace {

struct CheckFlags {
  std::string path, budget, write_budget, slack;
  std::optional<std::int64_t> step;
  bool json = false, markdown = false, force = false;
};

// "10%", "10 %" or "10": percent, 0 to 1000.
std::optional<double> parse_slack(std::string_view text) {
  double percent = 0;
  const auto [end, failed] =
      std::from_chars(text.data(), text.data() + text.size(), percent, std::chars_format::fixed);
  if (failed != std::errc() || !(percent >= 0 && percent <= 1000)) return {};
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  if (!rest.empty() && rest != "%") return {};
  return percent / 100;
}

int usage(Output& output, const std::string& message) {
  output.complain("check: " + message);
  return kUsage;
}

int write_file(const std::string& path, const std::string& text, Output& output) {
  if (path == "-") {
    output.write(text);
    return kOk;
  }
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) {
    output.complain(fmt::format("check: could not write '{}': {}", path, std::strerror(errno)));
    return kFailed;
  }
  output.write(fmt::format("wrote {}\n", path));
  return kOk;
}

int run_check(const CheckFlags& flags, Output& output) {
  if (flags.budget.empty() == flags.write_budget.empty())
    return usage(output,
                 "expected one of --budget FILE and --write-budget FILE; see lanescope "
                 "check --help");
  if (!flags.slack.empty() && flags.write_budget.empty())
    return usage(output, "--slack belongs to --write-budget");
  const auto slack = parse_slack(flags.slack.empty() ? "10%" : flags.slack);
  if (!slack)
    return usage(output, fmt::format("--slack expects percent from 0 to 1000, such as 10%; found "
                                     "'{}'",
                                     flags.slack));
  explain::Budget budget;
  if (!flags.budget.empty()) {  // before a long read
    auto read = read_budget(flags.budget);
    if (!read) {
      output.complain("check: --budget: " + message_of(read.error()));
      return read.error().code == Errc::kUnavailable ? kFailed : kUsage;
    }
    budget = *std::move(read);
  } else if (const auto target = check_target(flags.write_budget, flags.force); !target) {
    return usage(output, "--write-budget: " + message_of(target.error()));
  }
  int code = kOk;
  const std::optional<Trace> trace = open_trace(flags.path, output, &code);
  if (!trace) return code;
  RecordFunction stage("check: facts");
  const Result<explain::Facts> facts =
      explain::gather_facts(*trace, {.step = flags.step, .count_long_step = true});
  stage.end();
  if (!facts) return usage(output, facts_message_of(facts.error()));

  RecordFunction check_stage("check: budget");
  if (!flags.write_budget.empty()) {
    const auto text = explain::write_budget(*facts, *slack, flags.path);
    if (!text) return usage(output, message_of(text.error()));
    return write_file(flags.write_budget, *text, output);
  }
  const auto report = explain::check_budget(*facts, budget);
  check_stage.end();
  if (!report) return usage(output, message_of(report.error()));
  const report::CheckOptions options{flags.path, flags.budget, flags.markdown};
  output.write(flags.json ? report::check_json(*facts, *report, options)
                          : report::check_text(*facts, *report, options));
  return report->kept() ? kOk : kFailed;
}

}  // namespace

void add_check_command(CommandLine& line) {
  Command command =
      line.command("check", "check a trace against limits; exit code 1 if one is broken");
  const auto flags = std::make_shared<CheckFlags>();
  command.argument("TRACE", &flags->path, kTraceArgument, {Completes::kFile});
  command.text_flag("--budget", &flags->budget, "FILE", "limits to keep: docs/formats/budget.md",
                    {Completes::kFile});
  command.text_flag("--write-budget", &flags->write_budget, "FILE",
                    "write a budget that this trace keeps; - is standard output",
                    {Completes::kFile});
  command.text_flag("--slack", &flags->slack, "PERCENT",
                    "with --write-budget: limits are the measured values plus this (default 10%)");
  command.switch_flag("--force", &flags->force, "with --write-budget: overwrite an existing file");
  command.number_flag("--step", &flags->step, 0, std::numeric_limits<std::int64_t>::max(),
                      "check only this ProfilerStep (default: all but the first)");
  const Option json =
      command.switch_flag("--json", &flags->json, "JSON: docs/formats/json_output.md");
  const Option markdown =
      command.switch_flag("--md", &flags->markdown, "Markdown, for a summary of a CI job");
  json.excludes(markdown);
  command.epilogue(R"(Examples:
  lanescope check good.json.gz --write-budget budget.toml --slack 15%
  lanescope check trace.json.gz --budget budget.toml
  lanescope check trace.json.gz --budget budget.toml --md >> "$GITHUB_STEP_SUMMARY"

The exit code is also 1 if a limit is broken, or if the trace lacks what a limit needs.
)");
  command.runs([flags](Output& output) -> int { return run_check(*flags, output); });
}

}  // namespace lanescope::cli
