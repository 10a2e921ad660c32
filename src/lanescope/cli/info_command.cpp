// `lanescope info`: what a trace is, and what was lost or repaired.
#include <memory>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/kept_info.h"
#include "lanescope/cli/trace_part.h"

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
  add_category_flag(command, &flags->part);
  command.epilogue(R"(Examples:
  lanescope info trace.json.gz
  lanescope info trace.json.gz --json | python3 -m json.tool
)");
  command.runs([flags](Output& output) -> int {
    int code = kOk;
    std::optional<InfoTexts> texts;
    if (flags->part.is_given()) {
      const std::optional<Trace> part =
          open_part(flags->path, flags->part, "info", view::Edges::kCut, output, &code,
                    Damage::kShownByCaller);
      if (part) texts = info_texts(*part);
    } else {
      texts = open_info(flags->path, output, &code);
    }
    if (!texts) return code;
    output.write(flags->json ? texts->json : texts->text);
    return kOk;
  });
}

}  // namespace lanescope::cli
