#include "lanescope/explain/rules/list_readings.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/python_frames.h"
#include "lanescope/explain/rules/arithmetic.h"
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/sentences.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

// torch.tensor() reads a list twice. The first reading finds sizes and type. Then aten::empty makes the tensor, and the second
// reading copies the numbers: this is the hole. The first reading ends right before aten::empty. It has no events either, and it
// takes at most as long as the second one.
std::vector<Window> first_readings(const Facts& facts, const EventHole& hole) {
  const Trace& trace = *facts.trace;
  std::vector<Window> found;
  for (const Window& second : hole.windows) {
    struct Segment {
      SliceId slice;
      Window time;
    };
    std::vector<Segment> segments;
    facts.host->visit(trace.slices().track[raw(hole.place.after)],
                      second.start_ns - 2 * second.length_ns(), second.start_ns,
                      [&](SliceId slice, std::int64_t from, std::int64_t to) {
                        segments.push_back({slice, {from, to}});
                      });
    const auto is_code = [&](const Segment& each) {
      return each.slice == kNone<SliceId> || (trace.kind(each.slice) != CategoryKind::kCpuOp &&
                                              !is_api_call(trace.kind(each.slice)));
    };
    auto last = segments.rbegin();
    while (last != segments.rend() && is_code(*last)) ++last;  // skips code after aten::empty
    while (last != segments.rend() && !is_code(*last)) ++last;
    if (last == segments.rend()) continue;
    Window first = last->time;
    for (; last != segments.rend() && is_code(*last); ++last) first.start_ns = last->time.start_ns;
    first.start_ns = std::max(first.start_ns, first.end_ns - second.length_ns());
    found.push_back(first);
  }
  return found;
}

bool is_reading_frame(const Trace& trace, SliceId id) {
  return trace.kind(id) == CategoryKind::kPythonFunction &&
         (trace.name(id).starts_with("<built-in method tensor of type") ||
          trace.name(id).starts_with("<built-in method as_tensor of type"));
}

std::int64_t elements_made_in(const Trace& trace, SliceId frame) {
  const Track& track = trace.track(frame);
  for (std::uint32_t i = raw(frame) + 1; i < track.first_slice + track.slice_count &&
                                         trace.start_ns(SliceId{i}) < trace.end_ns(frame);
       ++i) {
    const std::string_view op = trace.name(SliceId{i});
    if (op != "aten::to" && op != "aten::lift_fresh") continue;
    const auto made = operator_inputs(trace, SliceId{i}).tensor(0);
    if (!made) continue;
    const double elements = made->elements();
    return elements < 1e15 ? static_cast<std::int64_t>(elements) : 0;  // a larger number is damage
  }
  return 0;
}

}  // namespace

bool is_read_from_list(const Trace& trace, const HolePlace& place) {
  const std::string_view after = trace.name(place.after);
  return trace.name(place.before) == "aten::empty" && !place.inside_before &&
         (after == "aten::to" || after == "aten::lift_fresh" || after == "aten::detach_");
}

ListReading list_reading(const Facts& facts, const EventHoles& found) {
  const Trace& trace = *facts.trace;
  const HolePlace& place = found.places.front().place;
  ListReading reading;
  if (!has_python_frames(trace)) return reading;
  const Track& track = trace.track(place.after);
  const auto windows = facts.steady_cpu_windows();
  std::vector<Window> holes;
  for (const EventHole& hole : found.places)
    holes.insert(holes.end(), hole.windows.begin(), hole.windows.end());
  holes = joined(std::move(holes));
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (!is_reading_frame(trace, id) || !inside(windows, trace.start_ns(id))) continue;
    std::int64_t in_holes_ns = 0;
    for (auto hole = std::partition_point(
             holes.begin(), holes.end(),
             [&](const Window& each) { return each.end_ns <= trace.start_ns(id); });
         hole != holes.end() && hole->start_ns < trace.end_ns(id); ++hole)
      in_holes_ns +=
          std::min(hole->end_ns, trace.end_ns(id)) - std::max(hole->start_ns, trace.start_ns(id));
    if (in_holes_ns * 2 < trace.dur_ns(id)) continue;
    reading.time_ns += trace.dur_ns(id);
    if (reading.longest == kNone<SliceId> || trace.dur_ns(id) > trace.dur_ns(reading.longest))
      reading.longest = id;
  }
  if (reading.time_ns * 2 < found.hole_ns) return {};
  reading.elements = elements_made_in(trace, reading.longest);
  return reading;
}

void tell_list(const Facts& facts, const ListReading& reading, Finding& finding) {
  finding.brief =
      say(facts, "torch.tensor(a list) takes {} [per step]", {ns(facts.per_step(reading.time_ns))});
  if (reading.elements > 0)
    append(finding.brief, say(facts, ", {} [number|numbers] at a time",
                              {count(static_cast<std::uint64_t>(reading.elements))}));
  finding.brief.pattern += ": the GPU waits for it";
  finding.action =
      say("Compute them on the GPU or in NumPy; arrays: torch.from_numpy(np.stack(list))");
  finding.evidence.push_back(called_at(facts, reading.longest, say("the longest such call")));
}

std::int64_t spare_first_readings(const Facts& facts, const EventHole& main, Finding& finding) {
  std::vector<Window> first = joined(first_readings(facts, main));
  std::erase_if(first, [&](const Window& each) {  // already marked as a hole
    return std::any_of(finding.spared_windows.begin(), finding.spared_windows.end(),
                       [&](const Window& hole) {
                         return hole.start_ns < each.end_ns && each.start_ns < hole.end_ns;
                       });
  });
  // A wait that a hole causes can last longer than the hole. The rest of that wait may include the first reading, so this
  // subtracts the rest.
  const std::int64_t first_ns = std::max<std::int64_t>(
      0, waiting_within(facts, finding.spared_thread, first) - (main.waiting_ns - main.hole_ns));
  finding.spared_windows.insert(finding.spared_windows.end(), first.begin(), first.end());
  if (first_ns > 0)
    finding.arithmetic.push_back(
        say(facts,
            "torch.tensor() reads a list twice, first for its sizes and type: + {} [per step] "
            "before aten::empty",
            {ns(facts.per_step(first_ns))}));
  return first_ns;
}

}  // namespace lanescope::explain::rules
