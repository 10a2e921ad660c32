// `lanescope table`: time per operator name, as torch prints it or without torch's bugs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "lanescope/analysis/key_averages.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/table_text.h"
#include "lanescope/cli/text.h"
#include "lanescope/cli/trace_part.h"
#include "lanescope/record/range.h"
#include "lanescope/report/key_averages_table.h"

namespace lanescope::cli {
namespace {

constexpr std::int64_t kMostTableRows = 1'000'000'000;

struct TableFlags {
  std::string path;
  PartFlags part;
  std::string style = "lanescope";
  std::string sort_by;
  std::string time_unit;
  std::string header;
  std::string names;  // empty: as in the style
  std::optional<std::int64_t> row_limit, group_by_stack;
  report::TableOptions widths;  // only the three column widths
  bool by_shape = false, by_overload = false, top_level_only = false, json = false, csv = false;
};

std::vector<std::string> sort_keys() {
  const auto keys = report::table_sort_keys();
  return {keys.begin(), keys.end()};
}

Result<report::TableOptions> table_options(const TableFlags& flags) {
  report::TableOptions options = flags.widths;
  const std::vector<std::string> keys = sort_keys();
  if (!flags.sort_by.empty() && std::find(keys.begin(), keys.end(), flags.sort_by) == keys.end()) {
    const auto close = close_matches(flags.sort_by, keys);
    return Error{Errc::kInvalidArgument,
                 fmt::format("--sort-by expects one of {}; found '{}'{}", fmt::join(keys, ", "),
                             flags.sort_by,
                             close.empty() ? "" : "; did you mean " + joined_or(close) + "?")};
  }
  options.sort_by = flags.sort_by;
  if (!flags.time_unit.empty()) {
    LANESCOPE_TRY(options.time_unit, report::parse_time_unit(flags.time_unit));
  }
  if (!flags.header.empty()) options.header = flags.header;
  options.top_level_events_only = flags.top_level_only;
  options.readable_names = flags.names.empty() ? flags.style != "torch" : flags.names == "readable";
  // Data for programs is complete by default; people see the most important rows first.
  const bool for_people = !flags.json && !flags.csv;
  const std::int64_t usual_rows = !for_people ? -1 : flags.style == "torch" ? 100 : 25;
  options.row_limit = static_cast<int>(flags.row_limit.value_or(usual_rows));
  return options;
}

// The header row is between the first two lines of dashes.
void write_table(Output& output, std::string_view text) {
  int rules = 0;
  std::size_t widest = 0;
  while (!text.empty()) {
    const std::size_t end =
        std::min(text.size(), text.find('\n') + 1 == 0 ? text.size() : text.find('\n') + 1);
    const std::string_view line = text.substr(0, end);
    const bool is_rule =
        line.find_first_not_of("- \n") == std::string_view::npos && line.starts_with("---");
    if (is_rule) widest = std::max(widest, line.size());
    rules += is_rule ? 1 : 0;
    if (rules == 1 && !is_rule) {
      output.write_heading(line);
    } else {
      output.write(line);
    }
    text.remove_prefix(end);
  }
  const auto columns = static_cast<std::size_t>(output.terminal_width());
  if (columns > 0 && widest > columns + 1 && output.err_is_terminal()) {
    output.note(fmt::format(
        "(This table is {} columns wide, the terminal {}: add | less -S to scroll sideways.)",
        widest - 1, columns));
  }
}

int run_table(const TableFlags& flags, Output& output) {
  Result<report::TableOptions> options = table_options(flags);  // before a long read
  if (!options) {
    output.complain("table: " + message_of(options.error()));
    return kUsage;
  }
  int code = kOk;
  const std::optional<Trace> trace =
      open_part(flags.path, flags.part, "table", view::Edges::kCut, output, &code);
  if (!trace) return code;

  analysis::KeyAveragesOptions grouping;
  const bool torch_style = flags.style == "torch";
  grouping.style = torch_style ? analysis::TableStyle::kTorch : analysis::TableStyle::kLanescope;
  grouping.group_by_input_shape = flags.by_shape;
  grouping.group_by_overload_name = flags.by_overload;
  grouping.group_by_stack_n = static_cast<int>(flags.group_by_stack.value_or(0));
  RecordFunction stage("key averages");
  const Result<analysis::KeyAverages> table = analysis::compute_key_averages(*trace, grouping);
  if (table && options->sort_by.empty() && !torch_style) {
    options->sort_by = usual_sort_key(!table->device.empty());
  }
  stage.end();
  RecordFunction text_stage("table text");
  const Result<std::string> text = !table       ? Result<std::string>(table.error())
                                   : flags.json ? report::key_averages_json(*table, *options)
                                   : flags.csv  ? report::key_averages_csv(*table, *options)
                                                : report::key_averages_text(*table, *options);
  if (!text) {
    output.complain("table: " + message_of(text.error()));
    return kUsage;
  }
  if (flags.json || flags.csv) {
    output.write(*text);
  } else {
    write_table(output, *text);
    if (!text->ends_with('\n')) output.write("\n");  // torch's text already ends in one
    if (table->rows.empty())
      output.complain("the trace holds no operator, annotation or device work; see lanescope info");
  }
  return kOk;
}

}  // namespace

void add_table_command(CommandLine& line) {
  Command command =
      line.command("table", "where the time went: one row per operator, annotation and kernel");
  const auto flags = std::make_shared<TableFlags>();
  command.argument("TRACE", &flags->path, kTraceArgument, {Completes::kFile});
  add_part_flags(command, &flags->part);
  add_category_flag(command, &flags->part);
  command.choice_flag("--style", &flags->style, {"torch", "lanescope"},
                      "torch: the text of key_averages().table(), bugs included; lanescope: the "
                      "same columns with the bugs fixed and named under the table (default)");
  command.text_flag(
      "--sort-by", &flags->sort_by, "KEY",
      "largest first by this column: self_device_time_total, device_time_total (cuda_time_total), "
      "self_cpu_time_total, cpu_time_total, count, ... (default: self device time, without a "
      "device self CPU time; with --style torch order of appearance)",
      {Completes::kWords, sort_keys()});
  command.number_flag(
      "--row-limit", &flags->row_limit, -1, kMostTableRows,
      "rows shown; -1: all (default 25; with --style torch 100; with --json or --csv all)");
  command.switch_flag("--group-by-input-shape", &flags->by_shape,
                      "one row per name and input shapes");
  command.number_flag("--group-by-stack", &flags->group_by_stack, 0, 1'000'000,
                      "one row per name and innermost N frames of the call stack; 0: off");
  command.switch_flag("--group-by-overload-name", &flags->by_overload,
                      "one row per name and overload");
  command.switch_flag("--top-level-only", &flags->top_level_only,
                      "only rows that are inside no other row");
  command.choice_flag("--time-unit", &flags->time_unit, {"s", "ms", "us"},
                      "unit of every time (default: the one that fits, cell by cell)");
  command.width_flag("--max-name-column-width", &flags->widths.max_name_column_width,
                     "cut longer names (default 55)");
  command.width_flag("--max-src-column-width", &flags->widths.max_src_column_width,
                     "cut longer source locations (default 75)");
  command.width_flag("--max-shapes-column-width", &flags->widths.max_shapes_column_width,
                     "cut longer shapes (default 80)");
  command.choice_flag(
      "--names", &flags->names, {"readable", "raw"},
      "kernels by what their names say, or as the trace has them (default readable; "
      "with --style torch raw; --json and --csv always have the raw name)");
  command.text_flag("--header", &flags->header, "TEXT", "a line above the table");
  const Option json =
      command.switch_flag("--json", &flags->json, "JSON: docs/formats/json_output.md");
  const Option csv =
      command.switch_flag("--csv", &flags->csv, "CSV with one header line, units in the names");
  json.excludes(csv);
  command.epilogue(R"(Examples:
  lanescope table trace.json.gz                                    what cost most, corrected
  lanescope table trace.json.gz --style torch --sort-by cuda_time_total --row-limit 15
                                                                   what torch.profiler would have printed
  lanescope table trace.json.gz --group-by-input-shape | less -S   the same operator, shape by shape
  ssh host cat trace.json.gz | lanescope table -

Self time is a row's own, total time includes what it called. Columns: docs/definitions/key_averages.md.
)");
  command.runs([flags](Output& output) -> int { return run_table(*flags, output); });
}

}  // namespace lanescope::cli
