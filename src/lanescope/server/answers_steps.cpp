// The steps of a trace: all of them, or of many one for each bar of the page's row of steps, and pages.
#include <algorithm>

#include "lanescope/server/answers.h"

namespace lanescope::server {
namespace {

using report::JsonWriter;

// The page shows at most so many bars of steps, and asks for at most so many steps at once.
constexpr std::size_t kStepBars = 160;
constexpr std::int64_t kMostStepsOfPage = 1'000;
constexpr std::size_t kMostSavedSteps = 10'000;

// What the verdict counts: on the device, where it has one.
std::int64_t length_of(const view::LaneStep& step) {
  return step.device_dur_ns > 0 ? step.device_dur_ns : step.dur_ns;
}

void write_step(JsonWriter& json, const TraceState& state, std::size_t index) {
  const view::LaneStep& step = state.lanes().steps()[index];
  const std::int64_t origin = state.lanes().origin_ns();
  json.begin_object().integer("index", index);
  if (step.has_number)
    json.integer("number", step.number);
  else
    json.null("number");
  json.integer("slice", raw(step.slice)).integer("start_ns", step.start_ns - origin);
  json.integer("dur_ns", step.dur_ns).boolean("steady", step.is_steady != 0);
  json.integer("device_start_ns", step.device_start_ns - origin);
  json.integer("device_dur_ns", step.device_dur_ns).end_object();
}

}  // namespace

// Writes all steps. If there are so many that the page asks for them in pages (steps_answer): the typical one and
// one for each bar of its row of steps.
void write_steps(JsonWriter& json, const TraceState& state) {
  const auto steps = state.lanes().steps();
  json.integer("step_count", steps.size()).begin_array("steps");
  if (steps.size() <= kMostListedSteps)
    for (std::size_t i = 0; i < steps.size(); ++i) write_step(json, state, i);
  json.end_array();
  const auto typical = state.lanes().summary().typical_step;
  if (!typical) {
    json.null("typical_step");
  } else {
    json.integer("typical_step", *typical);
    json.begin_array("typical");
    write_step(json, state, *typical);
    json.end_array();
  }
  if (steps.size() <= kMostListedSteps) return;
  // The longest of each bar, as the page's row of steps shows it.
  const std::size_t each = (steps.size() + kStepBars - 1) / kStepBars;
  json.integer("steps_per_bar", each).begin_array("bars");
  for (std::size_t first = 0; first < steps.size(); first += each) {
    std::size_t longest = first;
    for (std::size_t i = first; i < std::min(first + each, steps.size()); ++i)
      if (length_of(steps[i]) > length_of(steps[longest])) longest = i;
    json.begin_object().integer("first_start_ns",
                                steps[first].start_ns - state.lanes().origin_ns());
    json.begin_array("longest");
    write_step(json, state, longest);
    json.end_array().end_object();
  }
  json.end_array();
}

Answer steps_answer(const TraceState& state, const Request& request) {
  const std::int64_t most = std::int64_t{1} << 53;
  const auto steps = state.lanes().steps();
  const auto count = static_cast<std::int64_t>(steps.size());
  const auto from = request.number("from", 0, most), at = request.number("at", -most, most),
             number = request.number("number", -most, most),
             limit = request.number("limit", 1, kMostStepsOfPage);
  for (const auto* each : {&from, &at, &number, &limit})
    if (!*each) return each->error();
  const std::int64_t length = limit->value_or(kMostStepsOfPage);
  std::int64_t first = from->value_or(0), found = -1;
  if (*at) {  // the last one that began by then
    const std::int64_t time = state.lanes().origin_ns() + **at;
    found = std::upper_bound(steps.begin(), steps.end(), time,
                             [](std::int64_t wanted, const view::LaneStep& each) {
                               return wanted < each.start_ns;
                             }) -
            steps.begin() - 1;
  } else if (*number) {
    const auto same = std::find_if(steps.begin(), steps.end(), [&](const view::LaneStep& each) {
      return each.has_number && each.number == **number;
    });
    found = same == steps.end() ? -1 : same - steps.begin();
  }
  if (found >= 0) first = found / length * length;
  JsonWriter json("view");
  json.integer("total", count).integer("found", found).begin_array("steps");
  for (std::int64_t i = first; i < std::min(count, first + length); ++i)
    write_step(json, state, static_cast<std::size_t>(i));
  return json.end_array().take();
}

std::string steps_within(const TraceState& state, const Span& span) {
  JsonWriter json("view");
  json.begin_array("steps");
  const auto steps = state.lanes().steps();
  std::size_t count = 0;
  for (std::size_t i = 0; i < steps.size() && count < kMostSavedSteps; ++i) {
    if (steps[i].start_ns >= span.end_ns ||
        steps[i].start_ns + std::max<std::int64_t>(steps[i].dur_ns, 1) <= span.start_ns)
      continue;
    write_step(json, state, i);
    ++count;
  }
  return json.end_array().take();
}

}  // namespace lanescope::server
