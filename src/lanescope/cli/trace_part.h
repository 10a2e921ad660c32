// --window, --step and --category of the commands that read a trace: which part of it they read. Defined in
// docs/definitions/reading.md#a-part-of-a-trace.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
// --category, for commands whose answer needs no other category.
void add_category_flag(Command& command, PartFlags* flags);

// As the functions of the same names in view/, but their messages name the flags.
Result<std::optional<view::TraceWindow>> parse_window(const std::string& text);
Result<view::TraceWindow> window_of_step(const std::vector<view::StepWindow>& steps,
                                         std::int64_t number);

// As open_trace(), and then the part that was asked for. `command` begins the complaints. A line on
// standard error says how many slices the ends of the part cut.
std::optional<Trace> open_part(const std::string& path, const PartFlags& flags, const char* command,
                               view::Edges edges, Output& output, int* code,
                               Damage damage = Damage::kPrinted);

// A trace of which one step is analysed: the part that this needs, where it is known to give the same answer, else all of it.
struct OpenedStep {
  Trace whole;
  std::optional<view::StepTrace> part = {};
  std::vector<view::StepWindow> steps = {};                   // of the note; empty: there is none
  std::function<void(std::string_view)> remember_steps = {};  // format::KeptSections::remember_note

  const Trace& trace() const { return part ? part->trace : whole; }
  // Ids of slices in the whole trace; empty: those of trace() are.
  std::span<const SliceId> originals() const {
    return part ? std::span<const SliceId>(part->originals) : std::span<const SliceId>();
  }
  // Notes the steps for the next question, if they are not known yet. `facts`: of the whole trace.
  void note_steps(const explain::Facts& facts) const;
};

// For commands with a --step of their own: without one as open_part() with cut edges.
std::optional<OpenedStep> open_step(const std::string& path, const PartFlags& flags,
                                    std::optional<std::int64_t> step, const char* command,
                                    Output& output, int* code);

}  // namespace lanescope::cli
