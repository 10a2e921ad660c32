// Stops about the CPU: steps, the thread, an operator, self and total time, the profiler, memory.
#include <fmt/format.h>

#include <algorithm>

#include "lanescope/analysis/thinning.h"
#include "lanescope/explain/user_code.h"
#include "lanescope/names/event_name.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/text_format.h"
#include "lanescope/report/tour_maker.h"

namespace lanescope::report {

using view::Lane;
using view::LaneKind;

void TourMaker::add_steps() {
  const auto lane = main_lane(LaneKind::kSteps);
  if (!lane) return;
  const bool found = facts_.steps.found.has_value();
  TourStop& stop = add(
      found ? "Iterations of your loop" : "Steps of your loop",
      found ? fmt::format("Each block is one iteration. The program did not mark steps, so "
                          "lanescope found {} iterations by what repeats. Calling profiler.step() "
                          "once an iteration marks them exactly.",
                          facts_.steps.steps.size())
            : fmt::format("Each block is one step: the time between two calls of profiler.step() "
                          "in your loop. torch.profiler writes it as ProfilerStep and a number. "
                          "The trace has {} of them{}",
                          facts_.steps.steps.size(),
                          facts_.steps.start_up_count > 0
                              ? "; the first also pays for start-up, so the numbers leave it out."
                              : "."),
      window_, found ? "" : "ProfilerStep");
  stop.lanes.push_back(*lane);
}

void TourMaker::add_thread() {
  const auto lane = main_lane(LaneKind::kCpu);
  if (!lane) return;
  const TrackId thread = lanes_.lanes()[*lane].track;
  const bool has_frames = std::any_of(
      lanes_.lanes().begin(), lanes_.lanes().end(),
      [&](const Lane& each) { return each.kind == LaneKind::kPython && each.track == thread; });
  TourStop& stop = add(
      "The CPU: your program",
      std::string(facts_.main_device ? "This lane is the thread of your program that launches "
                                       "most of the GPU's work."
                  : facts_.steps.marked && !facts_.steps.found
                      ? "This lane is the thread of your program that its steps run on."
                      : "This lane is the busiest thread of your program.") +
          " A bar is something that ran there; a bar below another ran inside it. Where there is "
          "no bar, the profiler recorded nothing: Python or other code ran there, or the thread "
          "slept." +
          (has_frames ? " The Python functions of this thread are a lane of their own." : "") +
          (facts_.main_device
               ? " The CPU does not compute on the GPU itself: it asks the GPU to, and goes on."
               : ""),
      window_);
  stop.lanes.push_back(*lane);
}

SliceId TourMaker::longest_operator() const {
  SliceId longest = kNone<SliceId>;
  for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) {
    const SliceId slice{i};
    if (!is_operator(slice) || trace_.start_ns(slice) < window_.start_ns ||
        trace_.end_ns(slice) > window_.end_ns)
      continue;
    if (longest == kNone<SliceId> ||
        facts_.nesting.self_ns[i] > facts_.nesting.self_ns[raw(longest)])
      longest = slice;
  }
  return longest;
}

void TourMaker::add_operator(SliceId op) {
  if (op == kNone<SliceId> || trace_.kind(op) != CategoryKind::kCpuOp) return;
  operator_ = op;
  const explain::Sentence code = explain::user_code(facts_, op, explain::PlaceDetail::kNoOperators);
  const std::string name = name_of(op);
  const std::string_view end = name.ends_with('.') ? "" : ".";  // of a name that was cut
  std::string text = code.pattern.empty() ? fmt::format("Here your program calls {}{}", name, end)
                                          : fmt::format("Here your program, {}, calls {}{}",
                                                        rounded_sentence(code), name, end);
  const names::EventName about = names::explain_event_name(trace_.name(op), trace_.kind(op));
  if (!about.what.empty()) text += fmt::format(" {}", one_line(about.what));
  if (trace_.name(op).starts_with("aten::"))
    text +=
        " Names that begin with aten:: are PyTorch's own operators: aten::mm is what torch.mm "
        "calls.";
  add_slice("An operator", std::move(text), op,
            trace_.name(op).starts_with("aten::") ? "aten::" : "");
}

void TourMaker::add_self_and_total() {
  if (operator_ == kNone<SliceId>) return;
  // The outermost operator around it that has others inside.
  SliceId outer = operator_;
  for (SliceId up = facts_.nesting.parent[raw(operator_)]; up != kNone<SliceId>;
       up = facts_.nesting.parent[raw(up)])
    if (is_operator(up)) outer = up;
  const std::int64_t self = facts_.nesting.self_ns[raw(outer)], total = trace_.dur_ns(outer);
  if (self < 0 || self >= total) return;
  add_slice("Self and total",
            fmt::format("{} takes {} in total. {} of these are its own, its self time; the rest "
                        "is in the bars below it, which it calls. Self times add up, totals do "
                        "not: the time of a bar is in the total of every bar above it.",
                        name_of(outer), rounded_time(total), rounded_time(self)),
            outer, "Self and total");
}

void TourMaker::add_profiler() {
  for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) {
    const SliceId slice{i};
    if (trace_.kind(slice) != CategoryKind::kOverhead ||
        !trace_.name(slice).starts_with("Activity Buffer Request"))
      continue;
    add_slice("The profiler itself",
              fmt::format("Activity Buffer Request is not your program: the profiler fetches "
                          "memory for its own notes, {} here. Without the profiler it does not "
                          "happen.",
                          rounded_time(trace_.dur_ns(slice))),
              slice, "Activity Buffer Request");
    return;
  }
}

void TourMaker::add_memory() {
  for (std::uint32_t i = 0; i < lanes_.lanes().size(); ++i) {
    const Lane& lane = lanes_.lanes()[i];
    if (lane.kind != LaneKind::kCounter || lane.source != view::CounterSource::kAllocated ||
        !lane.device)
      continue;
    TourStop& stop = add(
        "Memory",
        fmt::format(
            "This line is the memory that PyTorch has given to tensors on GPU {}: at most {}.",
            *lane.device, format_size(static_cast<std::int64_t>(lanes_.counter(lane).largest()))),
        {lanes_.origin_ns(), lanes_.end_ns()}, "memory");
    if (const auto end = analysis::find_memory_end(trace_))
      stop.text += fmt::format(" It was recorded for the first {}; then the budget ended it.",
                               rounded_time(*end - lanes_.origin_ns()));
    stop.lanes.push_back(i);
    return;
  }
}

}  // namespace lanescope::report
