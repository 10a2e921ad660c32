// `lanescope memory`: from the memory records: the peak, who owned it, what grew.
#include <limits>
#include <memory>

#include "lanescope/analysis/memory_timeline.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/trace_part.h"
#include "lanescope/record/range.h"
#include "lanescope/report/memory_text.h"

namespace lanescope::cli {

void add_memory_command(CommandLine& line) {
  Command command =
      line.command("memory", "memory over time: the peak, what held it, what was never freed");
  struct MemoryFlags {
    PartFlags part;
    std::string path;
    std::optional<std::int64_t> row_limit;
    bool json = false;
  };
  const auto flags = std::make_shared<MemoryFlags>();
  command.argument("TRACE", &flags->path, kTraceArgument, {Completes::kFile});
  command.number_flag("--row-limit", &flags->row_limit, 1, std::numeric_limits<std::int64_t>::max(),
                      "rows of each list in the text (default: 12)");
  command.switch_flag("--json", &flags->json, "JSON: docs/formats/json_output.md");
  add_part_flags(command, &flags->part);
  command.epilogue(R"(Examples:
  lanescope memory trace.json.gz
  lanescope memory trace.json.gz --json | python3 -m json.tool

The trace must have been recorded with profile_memory=True; with_stack=True adds the lines of the
program. The numbers are defined in docs/definitions/memory.md.
)");
  command.runs([flags](Output& output) -> int {
    int code = kOk;
    const std::optional<Trace> trace =
        open_part(flags->path, flags->part, "memory", view::Edges::kCut, output, &code);
    if (!trace) return code;
    RecordFunction stage("memory timeline");
    const analysis::MemoryTimeline timeline = analysis::compute_memory_timeline(*trace);
    output.write(
        flags->json ? report::memory_json(*trace, timeline)
                    : report::memory_text(*trace, timeline,
                                          static_cast<std::size_t>(flags->row_limit.value_or(12))));
    return kOk;
  });
}

}  // namespace lanescope::cli
