// `lanescope describe`: what the name of a GPU kernel says, and what any other event is.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "lanescope/analysis/event_name_totals.h"
#include "lanescope/analysis/kernel_name_totals.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/text.h"
#include "lanescope/record/range.h"
#include "lanescope/report/event_name_text.h"
#include "lanescope/report/kernel_name_text.h"

namespace lanescope::cli {
namespace {

constexpr std::size_t kMostInput = std::size_t{64} << 20;  // bytes of names on standard input

struct DescribeFlags {
  std::vector<std::string> names;
  std::string trace;
  std::optional<std::int64_t> row_limit;
  bool events = false;
  bool json = false;
};

// Standard input, one name per line.
Result<std::vector<std::string>> read_names() {
  std::string text;
  std::string buffer(std::size_t{1} << 16, '\0');
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return Error{Errc::kIo,
                   std::string("expected names on standard input, one per line; found: ") +
                       std::strerror(errno)};
    }
    if (count == 0) break;
    text.append(buffer, 0, static_cast<std::size_t>(count));
    if (text.size() > kMostInput)
      return Error{Errc::kLimit, "expected at most 64 MiB of names on standard input; found more"};
  }
  std::vector<std::string> names;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) names.emplace_back(line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

int run_trace(const DescribeFlags& flags, Output& output) {
  int code = kOk;
  const std::optional<Trace> trace = open_trace(flags.trace, output, &code);
  if (!trace) return code;
  const int rows = static_cast<int>(flags.row_limit.value_or(-1));
  if (flags.events) {
    RecordFunction stage("event names");
    const auto totals = analysis::compute_event_name_totals(*trace);
    output.write(flags.json ? report::event_name_totals_json(*trace, totals, rows)
                            : report::event_name_totals_text(*trace, totals, rows));
    return kOk;
  }
  RecordFunction stage("kernel names");
  const auto totals = analysis::compute_kernel_name_totals(*trace);
  output.write(flags.json ? report::kernel_name_totals_json(*trace, totals, rows)
                          : report::kernel_name_totals_text(*trace, totals, rows));
  return kOk;
}

int run_describe(const DescribeFlags& flags, Output& output) {
  if (flags.trace.empty() == flags.names.empty()) {
    output.complain(
        "describe: expected names of kernels or events, - for names on standard input, or --trace "
        "TRACE; found " +
        std::string(flags.names.empty() ? "none of them" : "names and a trace"));
    return kUsage;
  }
  if (flags.events && flags.trace.empty()) {
    output.complain("describe: expected --trace TRACE with --events; found names");
    return kUsage;
  }
  if (!flags.trace.empty()) return run_trace(flags, output);
  std::vector<std::string> names;
  for (const std::string& name : flags.names) {
    if (name != "-") {
      names.push_back(name);
      continue;
    }
    const auto lines = read_names();
    if (!lines) {
      output.complain("name: " + message_of(lines.error()));
      return kUsage;
    }
    names.insert(names.end(), lines->begin(), lines->end());
  }
  output.write(flags.json ? report::names_json(names) : report::names_text(names));
  return kOk;
}

}  // namespace

void add_describe_command(CommandLine& line) {
  Command command = line.command(
      "describe", "what a name in a trace means: GPU kernels, operators, API calls, overhead");
  command.old_name("name");
  const auto flags = std::make_shared<DescribeFlags>();
  command.arguments("NAME", &flags->names,
                    "a kernel's name, mangled or not, or the name of any other event; - reads "
                    "names from standard input, one per line");
  command.text_flag("--trace", &flags->trace, "TRACE",
                    "every kernel, copy and memset of a trace, with readable name, raw name, count "
                    "and total time",
                    {Completes::kFile});
  command.switch_flag("--events", &flags->events,
                      "with --trace: a glossary of everything else in the trace, by kind: count, "
                      "total time and what it is");
  command.number_flag("--row-limit", &flags->row_limit, -1, 1'000'000'000,
                      "with --trace: names shown; -1: all (default)");
  command.switch_flag("--json", &flags->json, "JSON: docs/formats/json_output.md");
  command.epilogue(R"(Examples:
  lanescope describe ampere_sgemm_128x64_nn triton_poi_fused_add_relu_0
  lanescope describe aten::_local_scalar_dense cudaStreamIsCapturing "Torch-Compiled Region: 2/1"
  lanescope describe --trace trace.json.gz | less -S
  lanescope describe --trace trace.json.gz --events | less -S
  lanescope describe - < names.txt

For a kernel, this shows only what its name says; it leaves out parts whose meaning is not published. For other
events: what they are, whether the CPU waits in them, what they put on the GPU, and what to know if there are many.
Names without a source stay unknown. docs/definitions/names.md lists the sources.
)");
  command.runs([flags](Output& output) -> int { return run_describe(*flags, output); });
}

}  // namespace lanescope::cli
