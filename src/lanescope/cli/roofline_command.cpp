// `lanescope roofline`: how near each operator came to what the GPU can do.
#include <limits>
#include <memory>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/text.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/record/range.h"
#include "lanescope/report/roofline_text.h"

namespace lanescope::cli {
namespace {

struct RooflineFlags {
  std::string path;
  std::optional<std::int64_t> step, rows;
  bool json = false;
};

int run_roofline(const RooflineFlags& flags, Output& output) {
  int code = kOk;
  const std::optional<Trace> trace = open_trace(flags.path, output, &code);
  if (!trace) return code;
  RecordFunction stage("roofline");
  const Result<explain::Facts> facts = explain::gather_facts(*trace, flags.step);
  if (!facts) {
    output.complain("roofline: --step: " + message_of(facts.error()));
    return kUsage;
  }
  const analysis::Roofline none;
  const analysis::Roofline& roofline =
      facts->main_device ? explain::kernel_facts(*facts).roofline : none;
  const auto rows = static_cast<std::size_t>(flags.rows.value_or(20));
  output.write(flags.json ? report::roofline_json(*facts, roofline)
                          : report::roofline_text(*facts, roofline, rows));
  return kOk;
}

}  // namespace

void add_roofline_command(CommandLine& line) {
  Command command = line.command(
      "roofline", "how near each operator came to what the GPU can do, and what limits it");
  const auto flags = std::make_shared<RooflineFlags>();
  command.argument("TRACE", &flags->path, kTraceArgument, {Completes::kFile});
  command.number_flag("--step", &flags->step, 0, std::numeric_limits<std::int64_t>::max(),
                      "speak of this ProfilerStep only (default: of all but the first)");
  command.number_flag("--rows", &flags->rows, 1, 1'000'000, "rows of the table (default: 20)");
  command.switch_flag("--json", &flags->json, "JSON: docs/formats/json_output.md");
  command.epilogue(R"(Examples:
  lanescope roofline trace.json.gz
  lanescope roofline trace.json.gz --step 12 --rows 50
  lanescope roofline trace.json.gz --json | python3 -m json.tool

The trace needs input shapes: record with record_shapes=True. The numbers are defined in
docs/definitions.md#roofline.
)");
  command.runs([flags](Output& output) -> int { return run_roofline(*flags, output); });
}

}  // namespace lanescope::cli
