// `lanescope info`: what a trace is, and what was lost or repaired.
#include <memory>

#include "lanescope/analysis/trace_info.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/trace_part.h"
#include "lanescope/record/range.h"
#include "lanescope/report/trace_info_text.h"

namespace lanescope::cli {

void add_info_command(CommandLine& line) {
  Command command = line.command(
      "info", "what a trace is: writer, devices, window, steps, events, what was lost");
  struct InfoFlags {
    PartFlags part;
    std::string path;
    bool json = false;
  };
  const auto flags = std::make_shared<InfoFlags>();
  command.argument("TRACE", &flags->path, kTraceArgument, {Completes::kFile});
  command.switch_flag("--json", &flags->json, "JSON: docs/formats/json_output.md");
  add_part_flags(command, &flags->part);
  command.epilogue(R"(Examples:
  lanescope info trace.json.gz
  lanescope info trace.json.gz --json | python3 -m json.tool
)");
  command.runs([flags](Output& output) -> int {
    int code = kOk;
    const std::optional<Trace> trace = open_part(
        flags->path, flags->part, "info", view::Edges::kCut, output, &code, Damage::kShownByCaller);
    if (!trace) return code;
    RecordFunction stage("trace info");
    const analysis::TraceInfo info = analysis::compute_trace_info(*trace);
    output.write(flags->json ? report::trace_info_json(info) : report::trace_info_text(info));
    return kOk;
  });
}

}  // namespace lanescope::cli
