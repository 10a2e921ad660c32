// --window and --step of the commands that read a trace: which part of it they read. Defined in
// docs/definitions/reading.md#a-part-of-a-trace.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "lanescope/base/result.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/explain/facts.h"
#include "lanescope/view/crop_trace.h"

namespace lanescope::cli {

struct PartFlags {
  std::string window;                // as typed; empty: not given
  std::optional<std::int64_t> step;  // of commands without a --step of their own
  bool is_given() const { return !window.empty() || step.has_value(); }
};

// --window alone: the command has its own --step, given here, which excludes it.
void add_window_flag(Command& command, PartFlags* flags, CLI::Option* step);
// Both; they exclude each other.
void add_part_flags(Command& command, PartFlags* flags);

// Nanoseconds, half-open.
struct TraceWindow {
  std::int64_t start_ns = 0, end_ns = 0;
};
// "A..B", since the origin of the trace (view::trace_origin_ns): "10ms..12.5ms". Nothing: an empty
// text. kInvalidArgument: anything else, with the flag's name.
Result<std::optional<TraceWindow>> parse_window(const std::string& text);
// From the begin of a step's range on the CPU, or of its time on a device, to the later end of the
// two. kInvalidArgument: the trace has no such step.
Result<TraceWindow> window_of_step(const explain::Facts& facts, std::int64_t number);

// As open_trace(), and then the part that was asked for. `command` begins the complaints. A line on
// standard error says how many slices the ends of the part cut.
std::optional<Trace> open_part(const std::string& path, const PartFlags& flags, const char* command,
                               view::Edges edges, Output& output, int* code);

}  // namespace lanescope::cli
