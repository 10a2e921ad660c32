// --window and --step of the commands that read a trace: which part of it they read. Defined in
// docs/definitions/reading.md#a-part-of-a-trace.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/view/crop_trace.h"
#include "lanescope/view/trace_part.h"

namespace lanescope::cli {

using PartFlags = view::PartAsked;  // as typed; `step`: of commands without a --step of their own

// --window alone: the command has its own --step, given here, which excludes it.
void add_window_flag(Command& command, PartFlags* flags, Option step);
// Both; they exclude each other.
void add_part_flags(Command& command, PartFlags* flags);

// As the functions of the same names in view/, but their messages name the flags.
Result<std::optional<view::TraceWindow>> parse_window(const std::string& text);
Result<view::TraceWindow> window_of_step(const std::vector<view::StepWindow>& steps,
                                         std::int64_t number);

// As open_trace(), and then the part that was asked for. `command` begins the complaints. A line on
// standard error says how many slices the ends of the part cut.
std::optional<Trace> open_part(const std::string& path, const PartFlags& flags, const char* command,
                               view::Edges edges, Output& output, int* code,
                               Damage damage = Damage::kPrinted);

}  // namespace lanescope::cli
