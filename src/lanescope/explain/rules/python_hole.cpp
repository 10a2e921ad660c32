// A place in the step where, for a long time, the program does something without events while the
// GPU waits: plain Python, a file, a lock.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/analysis/gaps.h"
#include "lanescope/explain/owner_frames.h"
#include "lanescope/explain/python_frames.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/sampled_code.h"

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

bool is_loader(std::string_view name) { return name.starts_with("enumerate(DataLoader)"); }

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
                       kind == CategoryKind::kOverhead || is_loader(trace.name(id));
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

// What ended or began last before the hole, and what begins or ends next after it. If there are
// several at the same time, the range or the outermost operator.
struct Place {
  SliceId before = kNone<SliceId>, after = kNone<SliceId>;
  bool inside_before = false, inside_after = false;  // it began before it; it ends after it
};

bool is_outer(const Facts& facts, SliceId a, SliceId b) {
  return b == kNone<SliceId> || facts.trace->dur_ns(a) > facts.trace->dur_ns(b);
}

constexpr std::int64_t kSamePlaceNs = 30'000;  // a range ends so soon after the last operator in it

Place place_of_hole(const Facts& facts, const HostEvents& events, const Window& hole) {
  const auto& all = events.boundaries;
  const auto first_after =
      std::lower_bound(all.begin(), all.end(), hole.start_ns + hole.length_ns() / 2,
                       [](const Boundary& each, std::int64_t time) { return each.time_ns < time; });
  Place place;
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

struct Hole {
  std::uint64_t times = 0;
  std::int64_t hole_ns = 0, waiting_ns = 0, longest_ns = -1;  // waiting: with the rest of the wait
  Window longest;
  std::vector<Window> windows;  // all, in order of time
  Place place;
};

struct PythonHoles {
  std::vector<Hole> places;  // with most waiting first
  std::int64_t hole_ns = 0, waiting_ns = 0;
};

// Where the GPU waits for the CPU; stretches that touch are joined.
std::vector<Window> waits_for_cpu(const Facts& facts) {
  std::vector<Window> waits;
  for (const HostStretch& stretch : host_late_stretches(facts))
    waits.push_back({stretch.start_ns, stretch.end_ns});
  return joined(std::move(waits));
}

std::optional<PythonHoles> measure_python_hole(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const HostEvents events = host_events(facts);
  std::map<std::pair<std::string_view, std::string_view>, Hole> by_place;
  for (const Window& wait : waits_for_cpu(facts))
    for (const Window& hole : quiet_parts(events, wait)) {
      if (hole.length_ns() < kShortestHoleNs) continue;
      const Place place = place_of_hole(facts, events, hole);
      if (place.before == kNone<SliceId> || place.after == kNone<SliceId>) continue;
      Hole& found = by_place[{trace.name(place.before), trace.name(place.after)}];
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
  PythonHoles found;
  for (const auto& [names, hole] : by_place) {
    if (hole.times < least) continue;
    found.places.push_back(hole);
    found.hole_ns += hole.hole_ns;
    found.waiting_ns += hole.waiting_ns;
  }
  if (found.places.empty() || share_of(found.waiting_ns, facts.wall.partition.wall_ns) < 0.05)
    return std::nullopt;
  std::stable_sort(found.places.begin(), found.places.end(),
                   [](const Hole& a, const Hole& b) { return a.waiting_ns > b.waiting_ns; });
  return found;
}

// "autograd::engine::evaluate_function: MmBackward0" -> "MmBackward0".
std::string_view node_or_event(const Trace& trace, SliceId slice) {
  std::string_view label = trace.name(slice);
  if (label.starts_with(kEvaluateNode)) label.remove_prefix(std::string_view(kEvaluateNode).size());
  return label;
}

Sentence words_of(const Facts& facts, const Place& place) {
  const auto label = [&](SliceId slice) { return name(node_or_event(*facts.trace, slice)); };
  if (place.inside_before && place.inside_after && place.before == place.after)
    return say("inside {}", {label(place.before)});
  if (place.inside_before)
    return say("inside {}, before {}", {label(place.before), label(place.after)});
  if (place.inside_after)
    return say("inside {}, after {}", {label(place.after), label(place.before)});
  if (facts.trace->name(place.before) == facts.trace->name(place.after))
    return say("between one {} and the next", {label(place.before)});
  return say("between {} and {}", {label(place.before), label(place.after)});
}

// torch.tensor() makes an empty tensor, reads a list into it number by number, and moves it.
bool is_read_from_list(const Trace& trace, const Place& place) {
  const std::string_view after = trace.name(place.after);
  return trace.name(place.before) == "aten::empty" && !place.inside_before &&
         (after == "aten::to" || after == "aten::lift_fresh" || after == "aten::detach_");
}

// Calls of torch.tensor() or torch.as_tensor() around what follows the holes, as the Python frames show them.
struct ListReading {
  std::int64_t time_ns = 0;   // of all calls, in steady steps
  std::int64_t elements = 0;  // of the longest; 0: not known
  SliceId longest = kNone<SliceId>;
};

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
    return elements < 1e15 ? static_cast<std::int64_t>(elements) : 0;  // more is damage
  }
  return 0;
}

// A list is read where a call spends more than half of its time in holes.
ListReading list_reading(const Facts& facts, const PythonHoles& found) {
  const Trace& trace = *facts.trace;
  const Place& place = found.places.front().place;
  ListReading reading;
  if (!has_python_frames(trace)) return reading;
  const Track& track = trace.track(place.after);
  const auto windows = facts.steady_cpu_windows();
  std::vector<Window> holes;
  for (const Hole& hole : found.places)
    holes.insert(holes.end(), hole.windows.begin(), hole.windows.end());
  holes = joined(std::move(holes));
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (!is_reading_frame(trace, id) || !inside(windows, trace.start_ns(id))) continue;
    std::int64_t in_holes_ns = 0;
    for (const Window& hole : holes)
      in_holes_ns += std::max<std::int64_t>(
          0, std::min(hole.end_ns, trace.end_ns(id)) - std::max(hole.start_ns, trace.start_ns(id)));
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

// backward() makes the first gradient and wakes autograd's thread.
bool is_hand_over(const Trace& trace, const Place& place) {
  return trace.name(place.before) == "aten::ones_like" && !place.inside_before &&
         trace.name(place.after).starts_with(kEvaluateNode);
}

// Most of it is in the optimizer's range, which what comes after it may have begun in.
bool is_in_optimizer_step(const Facts& facts, const Hole& hole) {
  for (const SliceId beside : {hole.place.before, hole.place.after}) {
    const SliceId range = ancestor_named(facts, beside, "Optimizer.step");
    if (range == kNone<SliceId>) continue;
    const std::int64_t inside_ns = std::min(facts.trace->end_ns(range), hole.longest.end_ns) -
                                   std::max(facts.trace->start_ns(range), hole.longest.start_ns);
    if (inside_ns * 2 > hole.longest.length_ns()) return true;
  }
  return false;
}

// The end of backward(), and the optimizer's Python before its range: with stacks, the code that is neither torch's nor built
// into Python is less than half of the hole.
bool is_between_backward_and_optimizer(const Facts& facts, const Hole& hole) {
  const Trace& trace = *facts.trace;
  if (!trace.name(hole.place.before).starts_with(kEvaluateNode) ||
      !trace.name(hole.place.after).starts_with("Optimizer.step") || !has_python_frames(trace))
    return false;
  std::int64_t others_ns = 0;
  for (const Window& window : hole.windows)
    facts.host->visit(trace.slices().track[raw(hole.place.after)], window.start_ns, window.end_ns,
                      [&](SliceId slice, std::int64_t from, std::int64_t to) {
                        if (slice == kNone<SliceId>) return;
                        const std::string_view label = trace.name(slice);
                        if (trace.kind(slice) == CategoryKind::kPythonFunction &&
                            !is_frame_of_torch(label) && !label.starts_with("<built-in"))
                          others_ns += to - from;
                      });
  return others_ns * 2 < hole.hole_ns;
}

// What comes before the hole brought several values to the CPU, which the code there may work on.
bool follows_a_read(const Facts& facts, const Place& place) {
  constexpr std::int64_t kOneValue = 16;  // bytes
  const Trace& trace = *facts.trace;
  if (place.inside_before || place.before == kNone<SliceId>) return false;
  const Track& track = trace.track(place.before);
  for (std::uint32_t i = raw(place.before); i < track.first_slice + track.slice_count &&
                                            trace.start_ns(SliceId{i}) < trace.end_ns(place.before);
       ++i)
    for (const SliceId work : facts.links.launched_by(SliceId{i}))
      if (trace.name(work).starts_with("Memcpy DtoH") &&
          trace.slice_args(work).integer(ArgKey::kBytes).value_or(0) > kOneValue)
        return true;
  return false;
}

// The longest Python function that begins in the longest hole, if it takes half of the hole or more; kNone: none does.
SliceId function_in_hole(const Facts& facts, const Hole& hole) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(hole.place.after);
  SliceId longest = kNone<SliceId>;
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (trace.start_ns(id) >= hole.longest.end_ns) break;
    if (trace.kind(id) == CategoryKind::kPythonFunction &&
        trace.start_ns(id) >= hole.longest.start_ns && trace.end_ns(id) <= hole.longest.end_ns &&
        trace.dur_ns(id) * 2 >= hole.longest.length_ns() &&
        (longest == kNone<SliceId> || trace.dur_ns(id) > trace.dur_ns(longest)))
      longest = id;
  }
  return longest;
}

// What the optimizer calls, in its first steady range.
struct OptimizerKind {
  bool is_fused = false;
  std::uint64_t groups = 0;  // fused calls of one range: at least one a group
};

OptimizerKind optimizer_kind(const Facts& facts, const Hole& hole) {
  const Trace& trace = *facts.trace;
  OptimizerKind kind;
  for (const SliceId beside : {hole.place.before, hole.place.after}) {
    const SliceId range = ancestor_named(facts, beside, "Optimizer.step");
    if (range == kNone<SliceId>) continue;
    const Track& track = trace.track(range);
    for (std::uint32_t i = raw(range) + 1; i < track.first_slice + track.slice_count &&
                                           trace.start_ns(SliceId{i}) < trace.end_ns(range);
         ++i)
      if (trace.name(SliceId{i}).starts_with("aten::_fused_")) ++kind.groups;
    kind.is_fused = kind.groups > 0;
    return kind;
  }
  return kind;
}

// What samples of the launching thread's stack show there, if there are enough of them.
void tell_samples(const Facts& facts, const Hole& hole, Finding* finding) {
  const auto code = find_sampled_code(
      *facts.trace, analysis::main_launch_thread(*facts.trace, facts.links), hole.windows);
  if (!code) return;
  Sentence line = say("samples of the launching thread's Python stack at this place: ");
  append(line, describe(*code));
  finding->arithmetic.push_back(std::move(line));
  finding->try_next.back() =
      "lanescope flame TRACE --gpu-idle shows all Python stacks while the GPU was idle";
  finding->action =
      say("Take out of the step, or speed up, {}: about {} of {} samples at this place",
          {name(code->function), ratio(code->samples, code->of),
           count(static_cast<std::uint64_t>(code->of))});
}

Sentence action_for_optimizer(const OptimizerKind& kind) {
  if (!kind.is_fused)
    return say("Give the optimizer fused=True, where it has it; join groups of parameters");
  return kind.groups > 1
             ? say("It is fused: join groups of parameters with equal settings")
             : say("It is fused, with one group: a CUDA graph (capturable=True) spares its Python");
}

Finding tell_python_hole(const Facts& facts, const PythonHoles& found) {
  const Hole& main = found.places.front();
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  const bool of_optimizer = is_in_optimizer_step(facts, main);
  const bool is_of_backward = is_hand_over(*facts.trace, main.place);
  Finding finding;
  finding.verdict = say(facts, "The program does something without events for {} [per step] ({}), ",
                        {ns(facts.per_step(found.hole_ns)), ratio(found.hole_ns, wall_ns)});
  if (found.places.size() > 1) finding.verdict.pattern += "most of it ";
  append(finding.verdict, words_of(facts, main.place));
  finding.verdict.pattern += ", while the GPU has nothing to do.";
  // The advice on the optimizer, or on its backward pass, changes nothing elsewhere.
  std::int64_t waiting_ns = 0;
  for (const Hole& hole : found.places)
    if (is_of_backward ? is_hand_over(*facts.trace, hole.place)
        : of_optimizer ? is_in_optimizer_step(facts, hole)
                       : true)
      waiting_ns += hole.waiting_ns;
  finding.at_stake_ns = facts.per_step(waiting_ns);
  finding.at_stake_ratio = share_of(waiting_ns, wall_ns);
  finding.arithmetic.push_back(say(
      "counted: the GPU's waits for the CPU in which no thread that launches is in an operator, "
      "a call or the DataLoader for 200 us or more, at a place where this happens in each step"));
  finding.arithmetic.push_back(say(
      facts,
      "{} [per step] in such holes + {} of the same waits around them, which go too if the CPU "
      "gets ahead",
      {ns(facts.per_step(found.hole_ns)), ns(facts.per_step(found.waiting_ns - found.hole_ns))}));
  for (std::size_t i = 0; i < found.places.size() && i < 3; ++i) {
    const Hole& hole = found.places[i];
    Sentence line = words_of(facts, hole.place);
    append(line, say(facts, " x{}: {} [per step], the longest {}",
                     {count(hole.times), ns(facts.per_step(hole.hole_ns)), ns(hole.longest_ns)}));
    finding.evidence.push_back({hole.place.after, std::move(line)});
  }
  finding.try_next = {
      "look at the code at this place: a Python loop, NumPy, a file, logging, a lock; do it once, "
      "before the loop, or in another thread or process",
      "put record_function ranges around its parts, or record with_stack=True, to see which line "
      "it "
      "is"};
  finding.confidence = facts.confidence();
  finding.sample_count = main.times;
  finding.sample_noun = "hole";
  finding.explains = {{"graph-opportunity", facts.per_step(found.waiting_ns)}};
  // The calls around these are the optimizer's or autograd's, too, and tell the user nothing.
  finding.brief = of_optimizer     ? say("The GPU waits for the optimizer's own Python code")
                  : is_of_backward ? say("The GPU waits while backward() wakes autograd's thread")
                                   : say("Code without events ");
  const SliceId function =
      of_optimizer || is_of_backward ? kNone<SliceId> : function_in_hole(facts, main);
  if (function != kNone<SliceId>) {
    finding.brief = say("Code without events, mostly in {}: the GPU waits for it",
                        {name(short_frame(facts.trace->name(function)))});
    finding.evidence.insert(finding.evidence.begin(),
                            {function, say("the longest function in the longest hole")});
  } else if (!of_optimizer && !is_of_backward) {
    append(finding.brief, words_of(facts, main.place));
    finding.brief.pattern += ": the GPU waits for it";
  }
  finding.action =
      is_read_from_list(*facts.trace, main.place)
          ? say("If it is torch.tensor(a list): torch.from_numpy(np.stack(list)) copies at once")
      : of_optimizer ? action_for_optimizer(optimizer_kind(facts, main))
      : is_of_backward
          ? say("Look for other work on these cores, other threads of the program too: "
                "this takes less than 0.1 ms on a quiet machine")
      : follows_a_read(facts, main.place)
          ? say("If it works on what was just read from the GPU: work there, or on all values at "
                "once; else take it out of the step")
      : has_python_frames(*facts.trace)
          ? say("Look at what runs there; take it out of the step")
          : say("Look at what runs there; take it out of the step, or record with stacks to see "
                "its line");
  if (const ListReading reading = list_reading(facts, found);
      reading.longest != kNone<SliceId> && !of_optimizer && !is_of_backward)
    tell_list(facts, reading, finding);
  tell_samples(facts, main, &finding);
  // Nothing there is the program's.
  if (is_between_backward_and_optimizer(facts, main)) {
    finding.kind = FindingKind::kWhere;
    finding.brief =
        say("The GPU waits between the end of backward() and the optimizer's first call");
    finding.action =
        say("No code of the program is there: a CUDA graph of the step would spare it");
  }
  // One fused call already: what is left is the optimizer's own loop over its parameters.
  if (const OptimizerKind kind = optimizer_kind(facts, main); of_optimizer && kind.groups == 1)
    finding.kind = FindingKind::kWhere;
  return finding;
}

}  // namespace

extern constinit const Rule python_hole_rule = {
    .id = "python-hole",
    .question = "does the GPU wait for unrecorded code at one place of the step?",
    .meant_by = "python hole events hold",
    .order = 95,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_python_hole, tell_python_hole>,
    .fix = Fix::kCpu,
};

}  // namespace lanescope::explain::rules
