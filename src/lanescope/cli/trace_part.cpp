#include "lanescope/cli/trace_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/text.h"
#include "lanescope/record/range.h"
#include "lanescope/report/text_format.h"
#include "lanescope/view/search.h"

namespace lanescope::cli {
namespace {

CLI::Option* window_flag(Command& command, PartFlags* flags) {
  return command.text_flag("--window", &flags->window, "A..B",
                           "only this part of the trace: times since its begin, such as "
                           "10ms..12.5ms");
}

Result<TraceWindow> find_window(const Trace& trace, const PartFlags& flags) {
  if (flags.step) {
    LANESCOPE_TRY(const explain::Facts facts, explain::gather_facts(trace, {}));
    return window_of_step(facts, *flags.step);
  }
  LANESCOPE_TRY(const std::optional<TraceWindow> asked, parse_window(flags.window));
  const std::int64_t origin = view::trace_origin_ns(trace);
  return TraceWindow{origin + asked->start_ns, origin + asked->end_ns};
}

bool has_anything(const Trace& trace) {
  return trace.slices().size() + trace.instants().size() + trace.counters().size() > 0;
}

}  // namespace

void add_window_flag(Command& command, PartFlags* flags, CLI::Option* step) {
  window_flag(command, flags)->excludes(step);
}

void add_part_flags(Command& command, PartFlags* flags) {
  CLI::Option* const step =
      command.number_flag("--step", &flags->step, 0, std::numeric_limits<std::int64_t>::max(),
                          "only the part of the trace from the begin to the end of this step");
  add_window_flag(command, flags, step);
}

Result<std::optional<TraceWindow>> parse_window(const std::string& text) {
  if (text.empty()) return std::optional<TraceWindow>();
  const std::size_t dots = text.find("..");
  std::optional<std::int64_t> from, to;
  if (dots != std::string::npos) {
    from = view::parse_length_ns(std::string_view(text).substr(0, dots));
    to = view::parse_length_ns(std::string_view(text).substr(dots + 2));
  }
  if (!from || !to || *from >= *to)
    return Error{Errc::kInvalidArgument,
                 fmt::format("--window expects two times since the start of the trace, such as "
                             "10ms..12.5ms; found '{}'",
                             text)};
  return std::optional(TraceWindow{*from, *to});
}

Result<TraceWindow> window_of_step(const explain::Facts& facts, std::int64_t number) {
  for (std::size_t i = 0; i < facts.steps.steps.size(); ++i) {
    const auto& step = facts.steps.steps[i];
    if (step.number != number) continue;
    const analysis::Window device = facts.step_window(i);
    return TraceWindow{std::min(step.cpu_start_ns, device.start_ns),
                       std::max(step.cpu_end_ns, device.end_ns) + 1};
  }
  if (!facts.steps.marked)
    return Error{Errc::kInvalidArgument, "--step: the trace marks no steps; use --window"};
  const auto name = [](const std::optional<std::int64_t>& each) {
    return each ? fmt::format("{}", *each) : std::string("?");
  };
  return Error{Errc::kInvalidArgument,
               fmt::format("--step: expected a step of the trace, {} to {}; found {}",
                           name(facts.steps.steps.front().number),
                           name(facts.steps.steps.back().number), number)};
}

std::optional<Trace> open_part(const std::string& path, const PartFlags& flags, const char* command,
                               view::Edges edges, Output& output, int* code) {
  const auto complain = [&](const std::string& message) {
    output.complain(fmt::format("{}: {}", command, message));
    *code = kUsage;
    return std::nullopt;
  };
  if (const auto asked = parse_window(flags.window); !asked)  // before a long read
    return complain(message_of(asked.error()));
  std::optional<Trace> whole = open_trace(path, output, code);
  if (!whole || !flags.is_given()) return whole;
  RecordFunction stage("choose part");
  const Result<TraceWindow> window = find_window(*whole, flags);
  if (!window) return complain(message_of(window.error()));
  auto part = view::crop_trace(*whole, window->start_ns, window->end_ns, edges);
  if (!part) return complain(message_of(part.error()));
  if (!has_anything(part->trace))
    return complain(fmt::format(
        "expected --window to show something; the trace is {} long, and nothing of it is in {}",
        report::format_time_ns(view::trace_end_ns(*whole) - view::trace_origin_ns(*whole)),
        flags.window));
  if (part->crossing > 0 && edges == view::Edges::kCut)
    output.note(
        fmt::format("({} of {} slices reach beyond the part; only what is within it counts.)",
                    with_commas(part->crossing), with_commas(part->trace.slices().size())));
  return std::move(part->trace);
}

}  // namespace lanescope::cli
