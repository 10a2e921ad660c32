#include "lanescope/view/trace_part.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/view/kept_categories.h"
#include "lanescope/view/search.h"

namespace lanescope::view {

Result<std::optional<TraceWindow>> parse_window(const std::string& text) {
  if (text.empty()) return std::optional<TraceWindow>();
  const std::size_t dots = text.find("..");
  std::optional<std::int64_t> from, to;
  if (dots != std::string::npos) {
    from = parse_length_ns(std::string_view(text).substr(0, dots));
    to = parse_length_ns(std::string_view(text).substr(dots + 2));
  }
  if (!from || !to || *from >= *to)
    return Error{Errc::kInvalidArgument,
                 fmt::format("window expects two times since the start of the trace, such as "
                             "10ms..12.5ms; found '{}'",
                             text)};
  return std::optional(TraceWindow{*from, *to});
}

namespace {

Result<std::vector<StepWindow>> find_step_windows(const Trace& trace, const StepNote& note) {
  if (auto known = steps_of_note(note.known)) return std::move(*known);
  LANESCOPE_TRY(const explain::Facts facts, explain::gather_facts(trace));
  std::vector<StepWindow> steps = step_windows(facts);
  const auto text = note_of_steps(steps);
  if (text && note.remember) note.remember(*text);
  return steps;
}

}  // namespace

Result<TraceWindow> find_part(const Trace& trace, const PartAsked& asked, const StepNote& note) {
  if (asked.step) {
    LANESCOPE_TRY(const std::vector<StepWindow> steps, find_step_windows(trace, note));
    return window_of_step(steps, *asked.step);
  }
  LANESCOPE_TRY(const std::optional<TraceWindow> times, parse_window(asked.window));
  const std::int64_t origin = trace_origin_ns(trace);
  return TraceWindow{origin + times->start_ns, origin + times->end_ns};
}

Result<CroppedTrace> take_part(const Trace& whole, const PartAsked& asked, Edges edges,
                               const StepNote& note) {
  std::vector<bool> kept;
  if (!asked.categories.empty()) {
    LANESCOPE_TRY(kept, kept_categories(whole, asked.categories));
  }
  std::optional<TraceWindow> window;
  if (asked.has_times()) {
    LANESCOPE_TRY(window, find_part(whole, asked, note));
  }
  if (!asked.categories.empty()) return crop_categories(whole, kept, window, edges);
  return crop_trace(whole, window->start_ns, window->end_ns, edges);
}

}  // namespace lanescope::view
