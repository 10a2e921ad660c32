#include "lanescope/cli/trace_part.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "lanescope/cli/open_kept.h"
#include "lanescope/cli/text.h"
#include "lanescope/record/range.h"
#include "lanescope/report/text_format.h"

namespace lanescope::cli {
namespace {

Option window_flag(Command& command, PartFlags* flags) {
  return command.text_flag("--window", &flags->window, "A..B",
                           "only this part of the trace: times since its start, such as "
                           "10ms..12.5ms");
}

template <typename T>
Result<T> with_flag_name(Result<T> result) {
  if (!result && result.error().code == Errc::kInvalidArgument)
    result.error().message.insert(0, "--");
  return result;
}

bool has_anything(const Trace& trace) {
  return trace.slices().size() + trace.instants().size() + trace.counters().size() > 0;
}

std::string nothing_shown(const Trace& whole, const PartFlags& flags) {
  if (flags.categories.empty())
    return fmt::format(
        "expected --window to show something; the trace is {} long, and nothing of it is in {}",
        report::format_time_ns(view::trace_end_ns(whole) - view::trace_origin_ns(whole)),
        flags.window);
  return fmt::format("expected --category to show something; nothing{} has the category {}",
                     flags.has_times() ? " of this part" : " in the trace", flags.categories);
}

}  // namespace

void add_window_flag(Command& command, PartFlags* flags, Option step) {
  window_flag(command, flags).excludes(step);
}

void add_part_flags(Command& command, PartFlags* flags) {
  const Option step =
      command.number_flag("--step", &flags->step, 0, std::numeric_limits<std::int64_t>::max(),
                          "only the part of the trace from the start to the end of this step");
  add_window_flag(command, flags, step);
}

void add_category_flag(Command& command, PartFlags* flags) {
  command.text_flag("--category", &flags->categories, "NAME,...",
                    "only slices and marks of these categories, such as kernel,gpu_memcpy");
}

Result<std::optional<view::TraceWindow>> parse_window(const std::string& text) {
  return with_flag_name(view::parse_window(text));
}

Result<view::TraceWindow> window_of_step(const std::vector<view::StepWindow>& steps,
                                         std::int64_t number) {
  return with_flag_name(view::window_of_step(steps, number));
}

std::optional<Trace> open_part(const std::string& path, const PartFlags& flags, const char* command,
                               view::Edges edges, Output& output, int* code, Damage damage) {
  const auto complain = [&](const std::string& message) {
    output.complain(fmt::format("{}: {}", command, message));
    *code = kUsage;
    return std::nullopt;
  };
  if (const auto asked = parse_window(flags.window); !asked)  // before a long read
    return complain(message_of(asked.error()));
  format::KeptSections kept;
  kept.layer = view::steps_layer();
  std::optional<Trace> whole = flags.step ? open_trace_kept(path, output, code, &kept, damage)
                                          : open_trace(path, output, code, damage);
  if (!whole || !flags.is_given()) return whole;
  RecordFunction stage("choose part");
  auto part =
      with_flag_name(view::take_part(*whole, flags, edges, {kept.note, kept.remember_note}));
  if (!part) return complain(message_of(part.error()));
  if (!has_anything(part->trace)) return complain(nothing_shown(*whole, flags));
  if (part->crossing > 0 && edges == view::Edges::kCut)
    output.note(
        fmt::format("({} of {} slices reach beyond the part; only what is within it counts.)",
                    with_commas(part->crossing), with_commas(part->trace.slices().size())));
  return std::move(part->trace);
}

void OpenedStep::note_steps(const explain::Facts& facts) const {
  if (part || !steps.empty() || !remember_steps) return;
  if (const auto text = view::note_of_steps(view::step_windows(facts))) remember_steps(*text);
}

std::optional<OpenedStep> open_step(const std::string& path, const PartFlags& flags,
                                    std::optional<std::int64_t> step, const char* command,
                                    Output& output, int* code) {
  if (!step) {
    std::optional<Trace> trace =
        open_part(path, flags, command, view::Edges::kCut, output, code, Damage::kPrinted);
    if (!trace) return std::nullopt;
    return OpenedStep{.whole = *std::move(trace)};
  }
  format::KeptSections kept;
  kept.layer = view::steps_layer();
  std::optional<Trace> whole = open_trace_kept(path, output, code, &kept);
  if (!whole) return std::nullopt;
  OpenedStep opened{.whole = *std::move(whole), .remember_steps = kept.remember_note};
  auto known = view::steps_of_note(kept.note);
  if (!known) return opened;
  opened.steps = *std::move(known);
  const view::StepWindow* const asked = view::find_step(opened.steps, *step);
  if (!asked || !asked->needs.are_known()) return opened;
  RecordFunction stage("choose step");
  if (auto part = view::crop_step(opened.whole, asked->needs)) opened.part = *std::move(part);
  return opened;
}

}  // namespace lanescope::cli
