#include "lanescope/cli/step_report.h"

#include <limits>
#include <memory>

#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/text.h"
#include "lanescope/cli/trace_part.h"
#include "lanescope/record/range.h"

namespace lanescope::cli {
namespace {

struct StepReportFlags {
  std::string path;
  PartFlags part;
  std::optional<std::int64_t> step, rows;
  bool json = false;
};

int run_step_report(const StepReport& report, const StepReportFlags& flags, Output& output) {
  int code = kOk;
  const std::optional<OpenedStep> opened =
      open_step(flags.path, flags.part, flags.step, report.name, output, &code);
  if (!opened) return code;
  RecordFunction stage(report.name);
  const Result<explain::Facts> facts = explain::gather_facts(opened->trace(), {.step = flags.step});
  if (!facts) {
    output.complain(std::string(report.name) + ": " + facts_message_of(facts.error()));
    return kUsage;
  }
  if (flags.step) opened->note_steps(*facts);
  const auto rows = static_cast<std::size_t>(flags.rows.value_or(20));
  output.write(flags.json ? report.json(*facts, opened->originals()) : report.text(*facts, rows));
  return kOk;
}

}  // namespace

void add_step_report(CommandLine& line, const StepReport& report) {
  Command command = line.command(report.name, report.summary);
  const auto flags = std::make_shared<StepReportFlags>();
  command.argument("TRACE", &flags->path, kTraceArgument, {Completes::kFile});
  const Option step =
      command.number_flag("--step", &flags->step, 0, std::numeric_limits<std::int64_t>::max(),
                          "use only this ProfilerStep (default: all but the first)");
  add_window_flag(command, &flags->part, step);
  command.number_flag("--rows", &flags->rows, 1, 1'000'000, "rows of the table (default: 20)");
  command.switch_flag("--json", &flags->json, "JSON: docs/formats/json_output.md");
  command.epilogue(report.epilogue);
  command.runs(
      [flags, report](Output& output) -> int { return run_step_report(report, *flags, output); });
}

}  // namespace lanescope::cli
