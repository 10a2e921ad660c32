#include "lanescope/view/trace_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lanescope/view/crop_trace.h"
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

Result<TraceWindow> window_of_step(const explain::Facts& facts, std::int64_t number) {
  for (std::size_t i = 0; i < facts.steps.steps.size(); ++i) {
    const auto& step = facts.steps.steps[i];
    if (step.number != number) continue;
    const analysis::Window device = facts.step_window(i);
    return TraceWindow{std::min(step.cpu_start_ns, device.start_ns),
                       std::max(step.cpu_end_ns, device.end_ns) + 1};
  }
  if (!facts.steps.marked)
    return Error{Errc::kInvalidArgument, "step: the trace marks no steps; ask for a window"};
  const auto name = [](const std::optional<std::int64_t>& each) {
    return each ? fmt::format("{}", *each) : std::string("?");
  };
  return Error{Errc::kInvalidArgument,
               fmt::format("step: expected a step of the trace, {} to {}; found {}",
                           name(facts.steps.steps.front().number),
                           name(facts.steps.steps.back().number), number)};
}

Result<TraceWindow> find_part(const Trace& trace, const PartAsked& asked) {
  if (asked.step) {
    LANESCOPE_TRY(const explain::Facts facts, explain::gather_facts(trace, {}));
    return window_of_step(facts, *asked.step);
  }
  LANESCOPE_TRY(const std::optional<TraceWindow> times, parse_window(asked.window));
  const std::int64_t origin = trace_origin_ns(trace);
  return TraceWindow{origin + times->start_ns, origin + times->end_ns};
}

}  // namespace lanescope::view
