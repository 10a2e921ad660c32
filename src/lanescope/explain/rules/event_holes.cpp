#include "lanescope/explain/rules/event_holes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "lanescope/analysis/gaps.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

// Python between two operators takes 5 to 50 us, with a profiler.
constexpr std::int64_t kShortestHoleNs = 200'000;

// Where events begin and end on the threads that launch.
struct Boundary {
  std::int64_t time_ns = 0;
  SliceId slice = kNone<SliceId>;
  bool is_end = false;
};

struct HostEvents {
  std::vector<Window> busy;          // in operators, calls, loaders: disjoint, in order
  std::vector<Boundary> boundaries;  // of these and of the program's ranges, in order
};

bool is_loader_range(std::string_view name) { return name.starts_with("enumerate(DataLoader)"); }

HostEvents host_events(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::set<std::uint32_t> threads;
  for (const analysis::DeviceWork& work : facts.device().timeline.work)
    if (const SliceId call = facts.links.launch_of[raw(work.slice)]; call != kNone<SliceId>)
      threads.insert(raw(trace.slices().track[raw(call)]));
  HostEvents events;
  std::vector<Window> busy;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (!threads.contains(raw(trace.slices().track[i])) ||
        trace.name(id).starts_with("ProfilerStep"))
      continue;
    const CategoryKind kind = trace.kind(id);
    const bool works = kind == CategoryKind::kCpuOp || is_api_call(kind) ||
                       kind == CategoryKind::kOverhead || is_loader_range(trace.name(id));
    if (!works && kind != CategoryKind::kUserAnnotation) continue;
    if (works)
      busy.push_back({trace.start_ns(id), std::max(trace.end_ns(id), trace.start_ns(id) + 1)});
    events.boundaries.push_back({trace.start_ns(id), id, false});
    events.boundaries.push_back({trace.end_ns(id), id, true});
  }
  events.busy = joined(std::move(busy));
  std::stable_sort(events.boundaries.begin(), events.boundaries.end(),
                   [](const Boundary& a, const Boundary& b) { return a.time_ns < b.time_ns; });
  return events;
}

// Stretches without events, cut where a range begins or ends.
std::vector<Window> quiet_parts(const HostEvents& events, const Window& whole) {
  std::vector<Window> parts;
  std::int64_t from = whole.start_ns;
  auto busy =
      std::upper_bound(events.busy.begin(), events.busy.end(), whole.start_ns,
                       [](std::int64_t time, const Window& each) { return time < each.end_ns; });
  for (; busy != events.busy.end() && busy->start_ns < whole.end_ns; ++busy) {
    if (busy->start_ns > from) parts.push_back({from, busy->start_ns});
    from = busy->end_ns;
  }
  if (from < whole.end_ns) parts.push_back({from, whole.end_ns});
  return parts;
}

// True: `a` is around `b`. An operator that only ended shortly before another one is not: how shortly differs from step to step, and
// the place of a hole must have the same name in each of them.
bool is_outer(const Facts& facts, SliceId a, SliceId b) {
  const Trace& trace = *facts.trace;
  return b == kNone<SliceId> ||
         (trace.slices().track[raw(a)] == trace.slices().track[raw(b)] &&
          trace.start_ns(a) <= trace.start_ns(b) && trace.end_ns(a) >= trace.end_ns(b) &&
          trace.dur_ns(a) > trace.dur_ns(b));
}

constexpr std::int64_t kSamePlaceNs = 30'000;  // a range ends so soon after the last operator in it

HolePlace place_of_hole(const Facts& facts, const HostEvents& events, const Window& hole) {
  const auto& all = events.boundaries;
  const auto first_after =
      std::lower_bound(all.begin(), all.end(), hole.start_ns + hole.length_ns() / 2,
                       [](const Boundary& each, std::int64_t time) { return each.time_ns < time; });
  HolePlace place;
  for (auto each = first_after; each != all.begin();) {
    --each;
    if (place.before != kNone<SliceId> && each->time_ns + kSamePlaceNs < hole.start_ns) break;
    const bool better =
        place.before == kNone<SliceId> ||
        (each->is_end && (place.inside_before || is_outer(facts, each->slice, place.before)));
    if (!better) continue;
    place.before = each->slice;
    place.inside_before = !each->is_end;
  }
  for (auto each = first_after; each != all.end(); ++each) {
    if (place.after != kNone<SliceId> && each->time_ns > hole.end_ns + kSamePlaceNs) break;
    const bool better =
        place.after == kNone<SliceId> ||
        (!each->is_end && (place.inside_after || is_outer(facts, each->slice, place.after)));
    if (!better) continue;
    place.after = each->slice;
    place.inside_after = each->is_end;
  }
  return place;
}

// Where the GPU waits for the CPU; stretches that touch are joined.
std::vector<Window> waits_for_cpu(const Facts& facts) {
  std::vector<Window> waits;
  for (const HostStretch& stretch : host_late_stretches(facts))
    waits.push_back({stretch.start_ns, stretch.end_ns});
  return joined(std::move(waits));
}

}  // namespace

std::optional<EventHoles> find_event_holes(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::vector<Window> waits = waits_for_cpu(facts);
  // A hole is a part of a wait.
  std::erase_if(waits, [](const Window& wait) { return wait.length_ns() < kShortestHoleNs; });
  if (waits.empty()) return std::nullopt;
  const HostEvents events = host_events(facts);
  std::map<std::pair<std::string_view, std::string_view>, EventHole> by_place;
  for (const Window& wait : waits)
    for (const Window& hole : quiet_parts(events, wait)) {
      if (hole.length_ns() < kShortestHoleNs) continue;
      const HolePlace place = place_of_hole(facts, events, hole);
      if (place.before == kNone<SliceId> || place.after == kNone<SliceId>) continue;
      EventHole& found = by_place[{trace.name(place.before), trace.name(place.after)}];
      ++found.times;
      found.windows.push_back(hole);
      found.hole_ns += hole.length_ns();
      // Without the hole the CPU is ahead, so the rest of the wait that it causes is gone, too.
      found.waiting_ns +=
          hole.length_ns() * 2 > wait.length_ns() ? wait.length_ns() : hole.length_ns();
      if (hole.length_ns() <= found.longest_ns) continue;
      found.longest_ns = hole.length_ns();
      found.longest = hole;
      found.place = place;
    }
  // Three times or more, and in each step. Other rules report what happens once in a while.
  const std::uint64_t least =
      std::max<std::uint64_t>(facts.steps.marked ? 2 : 3, facts.selection.steady.size());
  EventHoles found;
  for (const auto& [names, hole] : by_place) {
    if (hole.times < least) continue;
    found.places.push_back(hole);
    found.hole_ns += hole.hole_ns;
    found.waiting_ns += hole.waiting_ns;
  }
  if (found.places.empty() || share_of(found.waiting_ns, facts.wall.partition.wall_ns) < 0.05)
    return std::nullopt;
  std::stable_sort(
      found.places.begin(), found.places.end(),
      [](const EventHole& a, const EventHole& b) { return a.waiting_ns > b.waiting_ns; });
  return found;
}

}  // namespace lanescope::explain::rules
