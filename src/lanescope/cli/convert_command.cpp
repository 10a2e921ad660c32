// `lanescope convert`: writes any trace as clean Kineto JSON, or for other tools.
#include <fmt/format.h>

#include <memory>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/save_recording.h"
#include "lanescope/cli/save_tables.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/cli/text.h"
#include "lanescope/cli/trace_part.h"
#include "lanescope/format/formats.h"

namespace lanescope::cli {
namespace {

struct ConvertFlags {
  std::string in, out, named_out, tool;  // named_out: of -o
  PartFlags part;
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

int complain_about_usage(const Error& error, Output& output) {
  output.complain("convert: " + message_of(error));
  return kUsage;
}

// Where to write: OUT or -o FILE.
Result<std::string> target_of(const ConvertFlags& flags) {
  if (flags.out.empty() == flags.named_out.empty())
    return Error{Errc::kInvalidArgument,
                 std::string("expected one file to write, found ") +
                     (flags.out.empty() ? "none; lanescope convert IN OUT" : "OUT and -o")};
  std::string target = flags.out.empty() ? flags.named_out : flags.out;
  LANESCOPE_TRY_VOID(check_target(target, flags.force));  // before a long read
  if (find_other_target(target)) {
    if (!flags.tool.empty())
      return Error{Errc::kInvalidArgument, "expected --for " + flags.tool +
                                               " with a .json or .pftrace file, found '" + target +
                                               "'"};
  } else {
    LANESCOPE_TRY_VOID(format::check_written_ending(target, other_target_endings()));
    if (target != "-" && !target.starts_with("/dev/") && !format::find_format_by_ending(target))
      return Error{
          Errc::kInvalidArgument,
          fmt::format("expected a file name that ends in {}, {}, found '{}'",
                      format::endings_text(format::format_endings(format::Endings::kWritten)),
                      other_target_endings(), target)};
  }
  return target;
}

int run_convert(const ConvertFlags& flags, Output& output) {
  const Result<std::string> target = target_of(flags);
  if (!target) return complain_about_usage(target.error(), output);
  const OtherTarget* const other = find_other_target(*target);
  int code = kOk;
  const std::optional<std::string> in = file_of(flags.in, output, &code);
  if (!in) return code;
  const format::TraceFormat* const format = format::find_format_of_file(*in);
  const format::TraceFormat* const written = format::find_format_by_ending(*target);
  const bool is_json = !other && (!written || written->name == "kineto-json");
  const bool is_for_perfetto = flags.tool == "perfetto";
  if (is_json && !is_for_perfetto && !flags.part.is_given() && format && format->read_pieces)
    return convert_recording(*in, *target, output);
  std::optional<Trace> trace =
      open_part(*in, flags.part, "convert", view::Edges::kWhole, output, &code);
  if (!trace) return code;
  if (other) return save_other(*other, std::move(*trace), *target, output);
  format::WriteOptions options;
  options.moves_overlaps = is_for_perfetto;
  return save_trace(*trace, *target, output, std::move(options));
}

}  // namespace

void add_convert_command(CommandLine& line) {
  Command command = line.command(
      "convert", "write a trace as clean JSON, or for Perfetto, SQLite, flame graphs, speedscope");
  const auto flags = std::make_shared<ConvertFlags>();
  command.argument("IN", &flags->in, kTraceArgument, {Completes::kFile});
  command
      .argument("OUT", &flags->out,
                "file to write; its ending chooses the format; - prints the JSON",
                {Completes::kFile})
      .not_required();
  command.text_flag("-o,--output", &flags->named_out, "FILE", "the same as OUT",
                    {Completes::kFile});
  command.choice_flag("--for", &flags->tool, {"perfetto"},
                      "move slices that overlap others without nesting to tracks of their own; "
                      "Perfetto drops them from JSON");
  add_part_flags(command, &flags->part);
  add_category_flag(command, &flags->part);
  command.switch_flag("--force", &flags->force, "overwrite OUT");
  command.epilogue(R"(Endings of OUT:
  .json .json.gz .json.zst   clean Kineto JSON: sorted, escaped, only whole arrows
  .pftrace                   Perfetto's own format: smaller than JSON; overlapping slices are kept
  .sqlite                    the tables and views of lanescope sql, for any program that opens SQLite
  .folded                    folded stacks of every track: "track;outermost;...;innermost N", N ns of self time
  .speedscope.json           every track on its time line, in ns, for https://www.speedscope.app

Examples:
  lanescope convert broken.json clean.json.gz            what could be read, for Perfetto and other tools
  lanescope convert trace.json.zst - | head -c 300
  lanescope convert trace.json.gz -o trace.pftrace       then open it at https://ui.perfetto.dev
  lanescope convert trace.json.gz clean.json.gz --for perfetto
  lanescope convert trace.json.gz part.json.gz --window 1.2s..1.5s
  lanescope convert trace.json.gz gpu.json.gz --category kernel
  lanescope convert trace.json.gz -o trace.sqlite && sqlite3 trace.sqlite "SELECT count(*) FROM kernel"

Standard error lists what the input had lost. OUT appears only when it is complete.
)");
  command.runs([flags](Output& output) -> int { return run_convert(*flags, output); });
}

}  // namespace lanescope::cli
