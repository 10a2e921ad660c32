// `lanescope convert`: writes any trace as clean Kineto JSON.
#include <fmt/format.h>

#include <memory>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/save_recording.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/cli/text.h"
#include "lanescope/format/formats.h"

namespace lanescope::cli {
namespace {

struct ConvertFlags {
  std::string in, out;
  bool force = false;
};

int convert_recording(const std::string& in, const std::string& out, Output& output) {
  int code = kOk;
  const std::optional<SavedRecording> saved = save_recording(in, out, output, &code);
  if (!saved) return code;
  for (const std::string& line : damage_lines(saved->stats, in)) output.complain(line);
  if (saved->is_empty) {
    output.complain(fmt::format("nothing was recorded in '{}', so nothing was written", in));
    return kFailed;
  }
  if (out != "-") print_written(saved->written, out, output);
  return kOk;
}

int run_convert(const ConvertFlags& flags, Output& output) {
  if (const Result<void> free = check_target(flags.out, flags.force);
      !free) {  // before a long read
    output.complain("convert: " + message_of(free.error()));
    return kUsage;
  }
  if (const Result<void> writable = format::check_written_ending(flags.out); !writable) {
    output.complain("convert: " + message_of(writable.error()));
    return kUsage;
  }
  int code = kOk;
  const std::optional<std::string> in = file_of(flags.in, output, &code);
  if (!in) return code;
  if (const format::TraceFormat* const format = format::find_format_of_file(*in);
      format && format->read_pieces)
    return convert_recording(*in, flags.out, output);
  const std::optional<Trace> trace = open_trace(*in, output, &code);
  if (!trace) return code;
  return save_trace(*trace, flags.out, output);
}

}  // namespace

void add_convert_command(CommandLine& line) {
  Command command = line.command(
      "convert",
      "write a clean copy of a trace as Kineto JSON: sorted, escaped, only whole arrows");
  const auto flags = std::make_shared<ConvertFlags>();
  command.argument("IN", &flags->in, kTraceArgument, {Completes::kFile});
  command.argument("OUT", &flags->out,
                   "file to write; packed when it ends in .gz or .zst; - prints the JSON",
                   {Completes::kFile});
  command.switch_flag("--force", &flags->force, "overwrite OUT");
  command.epilogue(R"(Examples:
  lanescope convert broken.json clean.json.gz            what could be read, for Perfetto and other tools
  lanescope convert trace.json.zst - | head -c 300

Standard error lists what the input had lost. OUT appears only when it is complete.
)");
  command.runs([flags](Output& output) -> int { return run_convert(*flags, output); });
}

}  // namespace lanescope::cli
