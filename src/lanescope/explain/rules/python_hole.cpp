// At the same place of each step, the CPU runs code without events (plain Python, file access, a lock), and the GPU waits for it.
// event_holes.h finds these holes.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/analysis/gaps.h"
#include "lanescope/explain/missing_operators.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/owner_frames.h"
#include "lanescope/explain/python_frames.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/event_holes.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/list_readings.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/sampled_code.h"
#include "lanescope/explain/user_code.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

Sentence words_of(const Facts& facts, const HolePlace& place) {
  const auto label = [&](SliceId slice) {
    return name(without_evaluate(facts.trace->name(slice)));
  };
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

// True: in the hole, backward() hands over to autograd's thread. It makes the first gradient (aten::ones_like) and wakes that
// thread.
bool is_hand_over(const Trace& trace, const HolePlace& place) {
  return trace.name(place.before) == "aten::ones_like" && !place.inside_before &&
         trace.name(place.after).starts_with(kEvaluateNode);
}

// True: more than half of the longest hole lies in a range `Optimizer.step`. The range contains the event before the hole or the
// event after it.
bool is_hole_of_optimizer(const Facts& facts, const EventHole& hole) {
  for (const SliceId neighbour : {hole.place.before, hole.place.after}) {
    const SliceId range = optimizer_step_around(facts, neighbour);
    if (range == kNone<SliceId>) continue;
    const std::int64_t inside_ns = std::min(facts.trace->end_ns(range), hole.longest.end_ns) -
                                   std::max(facts.trace->start_ns(range), hole.longest.start_ns);
    if (inside_ns * 2 > hole.longest.length_ns()) return true;
  }
  return false;
}

// True: the hole lies between backward() and the range `Optimizer.step`, and functions of the program take less than half of
// it. Needs Python stacks.
bool is_between_backward_and_optimizer(const Facts& facts, const EventHole& hole) {
  const Trace& trace = *facts.trace;
  if (!trace.name(hole.place.before).starts_with(kEvaluateNode) ||
      !names::is_optimizer_step(trace.name(hole.place.after)) || !has_python_frames(trace))
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

// True: the event before the hole copied several values to the CPU. The code in the hole may work on them.
bool follows_a_read(const Facts& facts, const HolePlace& place) {
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

// The Python function that fills at least half of the longest hole. First choice: the longest function that lies inside the hole.
// Second choice: the shortest function that reaches beyond the hole but spends at least half of its duration in it. A function can
// start before the hole, because the hole starts only when the GPU runs out of work. kNone: no function fits.
SliceId function_in_hole(const Facts& facts, const EventHole& hole) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(hole.place.after);
  SliceId inner = kNone<SliceId>, outer = kNone<SliceId>;
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (trace.start_ns(id) >= hole.longest.end_ns) break;
    const std::int64_t inside_ns = std::min(trace.end_ns(id), hole.longest.end_ns) -
                                   std::max(trace.start_ns(id), hole.longest.start_ns);
    if (trace.kind(id) != CategoryKind::kPythonFunction ||
        inside_ns * 2 < std::max(hole.longest.length_ns(), trace.dur_ns(id)))
      continue;
    if (inside_ns < trace.dur_ns(id)) {
      if (outer == kNone<SliceId> || trace.dur_ns(id) < trace.dur_ns(outer)) outer = id;
    } else if (inner == kNone<SliceId> || trace.dur_ns(id) > trace.dur_ns(inner)) {
      inner = id;
    }
  }
  return inner != kNone<SliceId> ? inner : outer;
}

// What the optimizer calls in the range `Optimizer.step` next to the hole.
struct OptimizerKind {
  bool is_fused = false;
  std::uint64_t groups = 0;  // fused calls of one range: at least one per group
  bool is_loop = false;      // it calls each tensor by itself, which optimizer-loop reports
};

OptimizerKind optimizer_kind(const Facts& facts, const EventHole& hole) {
  const Trace& trace = *facts.trace;
  OptimizerKind kind;
  for (const SliceId neighbour : {hole.place.before, hole.place.after}) {
    const SliceId range = optimizer_step_around(facts, neighbour);
    if (range == kNone<SliceId>) continue;
    const Track& track = trace.track(range);
    constexpr std::uint64_t kCallsOfLoop = 32;
    std::uint64_t in_place = 0, of_lists = 0;
    for (std::uint32_t i = raw(range) + 1; i < track.first_slice + track.slice_count &&
                                           trace.start_ns(SliceId{i}) < trace.end_ns(range);
         ++i) {
      const std::string_view op = trace.name(SliceId{i});
      if (op.starts_with("aten::_fused_")) ++kind.groups;
      if (op.starts_with("aten::_foreach_")) ++of_lists;
      if (op.starts_with("aten::") && op.ends_with('_')) ++in_place;
    }
    kind.is_fused = kind.groups > 0;
    kind.is_loop = !kind.is_fused && of_lists == 0 && in_place >= kCallsOfLoop;
    return kind;
  }
  return kind;
}

// Names the code in the hole, if there are enough samples of the launching thread's stack.
void tell_samples(const Facts& facts, const EventHole& hole, Finding* finding) {
  const auto code = find_sampled_code(*facts.trace, facts.main_thread, hole.windows);
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

// Whose code runs in the hole. If it is the own code of the optimizer or of autograd, the first screen does not name the events
// around the hole, because they do not help users.
struct HoleOwner {
  bool is_optimizer = false, is_autograd = false;
  bool is_emptied_cache = false;  // torch.cuda.empty_cache() ends the hole
};

// A call that frees memory at the driver, outside of any operator. The allocator of PyTorch frees within an operator, except in
// torch.cuda.empty_cache().
bool is_free_outside_operators(const Facts& facts, SliceId id) {
  if (!is_api_call(facts.trace->kind(id)) || !facts.trace->api_call(id).does(api_effect::kFrees))
    return false;
  const SliceId op = facts.links.op_of[raw(id)];
  return op == kNone<SliceId> || facts.trace->kind(op) != CategoryKind::kCpuOp;
}

// True: torch.cuda.empty_cache() runs at the end of the hole, and no other function of the program is known to fill the hole.
// Later operators must allocate again: so PyTorch's own allocator was emptied.
bool is_before_emptied_cache(const Facts& facts, const EventHole& hole) {
  const Trace& trace = *facts.trace;
  if (hole.place.inside_after || !is_free_outside_operators(facts, hole.place.after)) return false;
  const SliceId function = function_in_hole(facts, hole);
  if (function != kNone<SliceId> &&
      trace.name(function).find("function collect>") == std::string_view::npos &&
      trace.name(function).find("empty_cache") == std::string_view::npos &&
      trace.name(function).find("_cuda_emptyCache") == std::string_view::npos)
    return false;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (const SliceId id{i};
        trace.start_ns(id) > trace.end_ns(hole.place.after) && is_api_call(trace.kind(id)) &&
        trace.api_call(id).does(api_effect::kAllocates) && facts.links.op_of[i] != kNone<SliceId> &&
        trace.kind(facts.links.op_of[i]) == CategoryKind::kCpuOp)
      return true;
  return false;
}

// The calls that free memory right after these windows, with the time between them.
std::vector<Window> frees_after(const Facts& facts, const EventHole& hole) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(hole.place.after);
  std::vector<Window> found;
  std::uint32_t i = track.first_slice;
  for (const Window& window : hole.windows) {
    while (i < track.first_slice + track.slice_count && trace.start_ns(SliceId{i}) < window.end_ns)
      ++i;
    Window frees{window.end_ns, window.end_ns};
    for (;
         i < track.first_slice + track.slice_count && is_free_outside_operators(facts, SliceId{i});
         ++i)
      frees.end_ns = trace.end_ns(SliceId{i});
    if (frees.length_ns() > 0) found.push_back(frees);
  }
  return found;
}

HoleOwner owner_of(const Facts& facts, const EventHole& hole) {
  return {is_hole_of_optimizer(facts, hole), is_hand_over(*facts.trace, hole.place),
          is_before_emptied_cache(facts, hole)};
}

// The one function of the program that runs in the hole, where no function that it calls takes half of it.
struct OwnCode {
  Sentence place;        // "in train_step (train.py:96)"; empty: unknown, or more than one function
  bool has_all = false;  // no other frame is recorded in nine tenths of the longest hole
};

OwnCode own_code_in_hole(const Facts& facts, const EventHole& hole) {
  const Trace& trace = *facts.trace;
  OwnCode own;
  if (!has_python_frames(trace) || function_in_hole(facts, hole) != kNone<SliceId>) return own;
  const std::string line = python_line(facts, hole.place.after);
  if (line.empty() || python_line(facts, hole.place.before) != line) return own;
  own.place = user_code(facts, hole.place.after);
  std::int64_t own_ns = 0;
  facts.host->visit(trace.slices().track[raw(hole.place.after)], hole.longest.start_ns,
                    hole.longest.end_ns, [&](SliceId slice, std::int64_t from, std::int64_t to) {
                      if (slice != kNone<SliceId> && trace.name(slice) == line) own_ns += to - from;
                    });
  own.has_all = own_ns * 10 >= hole.longest.length_ns() * 9;
  return own;
}

void tell_brief(const Facts& facts, const EventHole& hole, const HoleOwner& owner,
                Finding& finding) {
  if (owner.is_optimizer) {
    finding.brief = say("The GPU waits for the optimizer's own Python code");
    return;
  }
  if (owner.is_autograd) {
    finding.brief = say("The GPU waits while backward() wakes autograd's thread");
    return;
  }
  if (owner.is_emptied_cache) {
    finding.brief =
        say(facts,
            "The GPU waits for torch.cuda.empty_cache() and the code before it, {} [time|times] "
            "[per step]",
            {count(a_step(facts, hole.times))});
    return;
  }
  const SliceId function = function_in_hole(facts, hole);
  if (function != kNone<SliceId>) {
    finding.brief = say("The GPU waits for Python code, mostly in {}",
                        {name(function_first(short_frame(facts.trace->name(function))))});
    const bool is_inside = facts.trace->start_ns(function) >= hole.longest.start_ns;
    finding.evidence.insert(is_inside ? finding.evidence.begin() : finding.evidence.end(),
                            {function, say("the longest function in the longest hole")});
    return;
  }
  if (const OwnCode own = own_code_in_hole(facts, hole); !own.place.pattern.empty()) {
    finding.names_cause = own.has_all;
    finding.brief = say("The GPU waits for code without events ");
    append(finding.brief, own.place);
    finding.brief.pattern += ", ";
    append(finding.brief, words_of(facts, hole.place));
    return;
  }
  finding.brief = say("The GPU waits for Python or other code without events, ");
  append(finding.brief, words_of(facts, hole.place));
}

// True: the function that fills the hole waits for another thread, by a queue, a lock or an event.
bool waits_for_a_thread(const Facts& facts, const EventHole& hole) {
  const SliceId function = function_in_hole(facts, hole);
  if (function == kNone<SliceId>) return false;
  const std::string_view label = facts.trace->name(function);
  return label.starts_with("queue.py(") || label.starts_with("threading.py(") ||
         label.find("/queue.py(") != label.npos || label.find("/threading.py(") != label.npos ||
         label.find("acquire' of '_thread.lock'") != label.npos ||
         label.find("method acquire of _thread.lock") != label.npos;
}

// True: perhaps the thread does nothing but wait in the hole, as a server thread waits for a request.
bool may_wait_for_work(const Facts& facts, const EventHole& hole) {
  const TrackId thread = facts.trace->slices().track[raw(hole.place.after)];
  return waits_for_a_thread(facts, hole) ||
         (is_worker_thread(facts, thread) && !has_python_frames(*facts.trace));
}

Sentence action_for_hole(const Facts& facts, const EventHole& hole, const HoleOwner& owner) {
  if (is_read_from_list(*facts.trace, hole.place))
    return say("If it is torch.tensor(a list): torch.from_numpy(np.stack(list)) copies at once");
  if (owner.is_optimizer) return action_for_optimizer(optimizer_kind(facts, hole));
  if (owner.is_autograd)
    return say(
        "Look for other work on these cores, other threads of the program too: "
        "this takes less than 0.1 ms on a quiet machine");
  if (owner.is_emptied_cache)
    return say(
        "Take it out of the loop, with gc.collect() or other code right before it: only "
        "empty_cache() calls cudaFree outside of operators");
  if (may_wait_for_work(facts, hole))
    return say(
        waits_for_a_thread(facts, hole)
            ? "It waits for another thread: if that is for requests, there is nothing to gain here"
            : "If this thread waits there for requests: nothing to gain; else record with stacks");
  if (follows_a_read(facts, hole.place))
    return say(
        "If it works on values just read from the GPU: compute on the GPU, or for all values at "
        "once; else move this code out of the step");
  if (own_code_in_hole(facts, hole).has_all)
    return facts.trace->name(hole.place.after) == "aten::lift_fresh" && !hole.place.inside_after
               ? say("It makes an array, as NumPy does in C code without a frame: make it on the "
                     "GPU, or before the step")
               : say("It is the function's own code, or C code without a frame such as NumPy: "
                     "take it out of the step");
  if (has_python_frames(*facts.trace))
    return say(
        "If it prepares data: do that ahead, in DataLoader workers or a thread. If it logs or "
        "saves: "
        "every n steps");
  return say(
      "Record with stacks to see its line. Prepare data ahead (workers, a thread), log and save "
      "every n steps");
}

// Marks the holes that the advice would remove, but only on the thread of the first place, which has most waiting. Returns how long
// the GPU waits for such holes of all threads, in ns of all steps.
std::int64_t spare_holes(const Facts& facts, const EventHoles& found, const HoleOwner& owner,
                         Finding& finding) {
  const EventHole& main = found.places.front();
  // Advice on the optimizer removes only the optimizer's holes; advice on the backward pass, only those of backward().
  std::int64_t waiting_ns = 0;
  finding.spared_thread = facts.trace->slices().track[raw(main.place.after)];
  for (const EventHole& hole : found.places) {
    const bool counts = owner.is_autograd        ? is_hand_over(*facts.trace, hole.place)
                        : owner.is_optimizer     ? is_hole_of_optimizer(facts, hole)
                        : owner.is_emptied_cache ? is_before_emptied_cache(facts, hole)
                                                 : true;
    if (!counts) continue;
    waiting_ns += hole.waiting_ns;
    // The replay keeps the holes of other threads, so it predicts a gain that is too small rather than too large.
    if (facts.trace->slices().track[raw(hole.place.after)] == finding.spared_thread)
      finding.spared_windows.insert(finding.spared_windows.end(), hole.windows.begin(),
                                    hole.windows.end());
  }
  if (owner.is_emptied_cache) {
    const std::vector<Window> frees = frees_after(facts, main);
    // A wait that began in the hole goes on in these calls.
    waiting_ns =
        std::max(waiting_ns, main.hole_ns + waiting_within(facts, finding.spared_thread, frees));
    finding.spared_windows.insert(finding.spared_windows.end(), frees.begin(), frees.end());
  }
  if (is_read_from_list(*facts.trace, main.place))
    waiting_ns += spare_first_readings(facts, main, finding);
  finding.spared_windows = joined(std::move(finding.spared_windows));
  return waiting_ns;
}

bool sleeps_in(const Facts& facts, const EventHole& hole) {
  const SliceId function = function_in_hole(facts, hole);
  return function != kNone<SliceId> && facts.trace->name(function) == "<built-in function sleep>";
}

Finding tell_python_hole(const Facts& facts, const EventHoles& found) {
  const EventHole& main = found.places.front();
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  const HoleOwner owner = owner_of(facts, main);
  Finding finding;
  finding.verdict = say(facts, "The program runs code without events for {} [per step] ({}), ",
                        {ns(facts.per_step(found.hole_ns)), ratio(found.hole_ns, wall_ns)});
  if (found.places.size() > 1) finding.verdict.pattern += "most of it ";
  append(finding.verdict, words_of(facts, main.place));
  finding.verdict.pattern += ", while the GPU has nothing to do.";
  const std::int64_t waiting_ns = spare_holes(facts, found, owner, finding);
  finding.at_stake_ns = facts.per_step(waiting_ns);
  finding.at_stake_ratio = share_of(waiting_ns, wall_ns);
  finding.arithmetic.push_back(say(
      "counted: the GPU's waits for the CPU in which no thread that launches is in an operator, "
      "a call or the DataLoader for 200 us or more, at a place where this happens in each step"));
  finding.arithmetic.push_back(say(
      facts,
      "{} [per step] in such holes + {} in the rest of these waits, which also end once the CPU is "
      "ahead of the GPU",
      {ns(facts.per_step(found.hole_ns)), ns(facts.per_step(found.waiting_ns - found.hole_ns))}));
  for (std::size_t i = 0; i < found.places.size() && i < 3; ++i) {
    const EventHole& hole = found.places[i];
    Sentence line = words_of(facts, hole.place);
    append(line, say(facts, " x{}: {} [per step], the longest {}",
                     {count(hole.times), ns(facts.per_step(hole.hole_ns)), ns(hole.longest_ns)}));
    finding.evidence.push_back({hole.place.after, std::move(line)});
  }
  finding.try_next = {
      "look at the code at this place: a Python loop, NumPy, a file, logging, a lock; do it once, "
      "before the loop, or in another thread or process",
      "to see which line it is, put record_function ranges around its parts, or record "
      "with_stack=True"};
  finding.confidence = facts.confidence();
  finding.sample_count = main.times;
  finding.sample_noun = "hole";
  finding.explains = {{"graph-opportunity", facts.per_step(found.waiting_ns)}};
  tell_brief(facts, main, owner, finding);
  finding.action = action_for_hole(facts, main, owner);
  if (sleeps_in(facts, main) && !owner.is_optimizer) advise_about_sleep(finding);
  if (const ListReading reading = list_reading(facts, found);
      reading.longest != kNone<SliceId> && !owner.is_optimizer && !owner.is_autograd)
    tell_list(facts, reading, finding);
  tell_samples(facts, main, &finding);
  // No code of the program runs there.
  if (is_between_backward_and_optimizer(facts, main)) {
    finding.kind = FindingKind::kWhere;
    finding.brief =
        say("The GPU waits between the end of backward() and the optimizer's first call");
    finding.action =
        say("No code of the program is there: a CUDA graph of the step would spare it");
  }
  // The optimizer already makes only one fused call. The rest is its own loop over its parameters. Where it loops over its tensors, that
  // has the same remedy and costs more.
  if (const OptimizerKind kind = optimizer_kind(facts, main);
      owner.is_optimizer && (kind.groups == 1 || kind.is_loop))
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
    .run = measure_and_tell<find_event_holes, tell_python_hole>,
    .names_no_cause = true,
    .fix = Fix::kCpu,
};

}  // namespace lanescope::explain::rules
