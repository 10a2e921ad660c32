#include "lanescope/explain/left_out_steps.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/start_up_calls.h"

namespace lanescope::explain {

Sentence cut_steps_note(const Facts& facts) {
  const auto& launches = facts.kernel_launches;
  const bool stops = facts.main_device && launches.gpu_stops_early();
  Sentence note;
  const std::vector<std::size_t> cut = facts.selection.cut();
  if (!cut.empty() && !facts.selection.lacks_gpu_work) {
    const std::size_t first = cut.front(), last = cut.back();
    note = first == last ? say("Step {} is left out", {step_number(facts, first)})
                         : say(last - first == 1 ? "Steps {} and {} are left out"
                                                 : "Steps {} to {} are left out",
                               {step_number(facts, first), step_number(facts, last)});
    if (!stops) {
      note.pattern +=
          first == last
              ? ": it holds far less work than each of the others; the recording may end in it."
              : ": they hold far less work than each of the others; the recording may end in them.";
      return note;
    }
    note.pattern += ": ";
  }
  if (!stops) return note;
  const Trace& trace = *facts.trace;
  note.pattern += note.pattern.empty() ? "No GPU work is in the trace for the last {} kernel "
                                         "launches, from {} on."
                                       : "no GPU work is in the trace for the last {} kernel "
                                         "launches, from {} on.";
  const SliceId first_lost = launches.calls[launches.recorded];
  note.values.push_back(linked(count(launches.lost_at_end()), first_lost));
  note.values.push_back(
      linked(ns(trace.start_ns(first_lost) - trace.window_start_ns()), first_lost));
  return note;
}

Sentence long_step_note(const Facts& facts) {
  const auto step = facts.selection.long_step;
  if (!step) return {};
  if (facts.selection.is_held_up) {
    const Value length =
        linked(ns(facts.step_window(*step).length_ns()), facts.steps.steps[*step].slice);
    const Value usual = ns(analysis::median_of_steps(facts.steady_lengths_ns()));
    const std::size_t others = facts.selection.steady.size();
    return others == 1
               ? say("Step {} took {}, another {} with the same calls, and is left out.",
                     {step_number(facts, *step), length, usual})
               : say("Step {} took {}, the other {} {} (median) with the same calls, and is left "
                     "out.",
                     {step_number(facts, *step), length, linked(count(others), shows::kStep),
                      usual});
  }
  return say("Step {} took {}, longer than the other {} together, and is left out.",
             {step_number(facts, *step),
              linked(ns(facts.step_window(*step).length_ns()), facts.steps.steps[*step].slice),
              linked(count(facts.selection.steady.size()), shows::kStep)});
}

Sentence turns_note(const Facts& facts) {
  const std::size_t turn = facts.selection.turn;
  if (turn == 0) return {};
  std::int64_t shortest_ns = 0, longest_ns = 0;
  for (std::size_t i = 0; i < turn; ++i) {
    const std::int64_t length_ns = facts.step_window(facts.selection.steady[i]).length_ns();
    shortest_ns = i == 0 ? length_ns : std::min(shortest_ns, length_ns);
    longest_ns = std::max(longest_ns, length_ns);
  }
  constexpr std::size_t kEnoughTurns = 3;  // two may be chance
  const std::string what = facts.selection.turns_seen < kEnoughTurns
                               ? "Long and short steps seem to alternate"
                               : "Long and short steps alternate";
  return say(what + ", every {} steps ({} to {}): the mean is of whole groups of {}.",
             {linked(count(turn), shows::kStep), ns(shortest_ns), ns(longest_ns), count(turn)});
}

namespace {

// How often the range that begins a step comes in it: tiles of a volume. 1: steps differ, or another event begins them.
std::size_t marks_of_a_step(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::size_t marks = 0;
  for (const analysis::Iterations::Range& step : facts.steps.found->ranges) {
    if (trace.kind(step.mark) != CategoryKind::kUserAnnotation) return 1;
    const Track& track = trace.track(step.mark);
    std::size_t found = 0;
    for (std::uint32_t i = raw(step.mark);
         i < track.first_slice + track.slice_count && trace.start_ns(SliceId{i}) < step.end_ns; ++i)
      found += trace.slices().name[i] == trace.slices().name[raw(step.mark)] ? 1 : 0;
    if (marks > 0 && found != marks) return 1;
    marks = found;
  }
  return marks;
}

Sentence how_steps_were_found(const Facts& facts) {
  const auto& found = facts.steps.found;
  const std::string begin = "The trace marks no steps: here ";
  const Value how_many = linked(count(found->ranges.size()), shows::kStep);
  if (found->kind == analysis::IterationMark::kRangeEnd && !found->owner.empty())
    return say(begin + "{} x {} make a step, {} found.",
               {text(found->owner), name(found->mark), how_many});
  if (found->kind == analysis::IterationMark::kRangeEnd)
    return say(begin + "each {} ends a step, {} found.", {name(found->mark), how_many});
  if (found->waits > 1)
    return found->owner.empty()
               ? say(begin + "{} waits of the CPU ({}) make a step, {} found.",
                     {count(found->waits), name(found->mark), how_many})
               : say(begin + "{} waits of the CPU in {} ({}) make a step, {} found.",
                     {count(found->waits), name(found->owner), name(found->mark), how_many});
  if (found->kind == analysis::IterationMark::kWait)
    return say(begin + "a step lasts from one wait in {} to the next, {} found.",
               {name(found->owner.empty() ? found->mark : found->owner), how_many});
  if (found->mark.starts_with("round of "))
    return say(begin + "a step is one {}, {} found.", {name(found->mark), how_many});
  if (const std::size_t marks = marks_of_a_step(facts); marks > 1)
    return say(begin + "a step begins with one {} of {}, {} found.",
               {name(found->mark), count(marks), how_many});
  return say(begin + "each {} begins a step, {} found.", {name(found->mark), how_many});
}

// "12 rounds of 72 operators (aten::linear, aten::tanh, ...)"
void append_loop(Sentence& note, const analysis::InnerLoop& loop) {
  note.pattern += "{} rounds of {}";
  note.values.push_back(count(loop.count));
  note.values.push_back(name(loop.name));
}

}  // namespace

Sentence found_iterations_note(const Facts& facts) {
  const auto& found = facts.steps.found;
  if (!found) return {};
  Sentence note = how_steps_were_found(facts);
  bool is_first = true;
  for (const analysis::InnerLoop& loop : found->inner) {
    if (loop.name == found->mark) {
      note.pattern += " Their loop takes {} of each step";
    } else {
      note.pattern += is_first ? " Of each step, " : "; ";
      append_loop(note, loop);
      note.pattern += " take {}";
    }
    note.values.push_back(ns(loop.time_ns));
    is_first = false;
  }
  if (!is_first) note.pattern += ".";
  if (found->of_outer > 0) {
    note.pattern += " Every {} of them are one round of a longer loop, {}.";
    note.values.push_back(count(found->of_outer));
    note.values.push_back(ns(found->outer_ns));
  }
  if (!found->only_step.empty()) {
    note.pattern += " The recording holds one {}: they may be rounds of one training step.";
    note.values.push_back(name(found->only_step));
  }
  return note;
}

Sentence other_phase_note(const Facts& facts) {
  const auto before = time_before_iterations(facts);
  if (!before || !before->is_other_phase || facts.steps.found->before_comes_again) return {};
  const analysis::StepRange& first = facts.steps.steps.front();
  Sentence note = say("Before them, {} of other work is recorded once: ",
                      {linked(ns(first.cpu_start_ns - before->window.start_ns), first.slice)});
  append_loop(note, facts.steps.found->before);
  note.pattern += ". The steps may be rounds inside a longer loop.";
  return note;
}

namespace {

// How long the main device works for outermost operators of these names.
std::int64_t device_time_of(const Facts& facts, const std::vector<std::string_view>& names) {
  std::vector<analysis::Window> windows;
  if (!facts.main_device) return 0;
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    const SliceId call = facts.links.launch_of[raw(work.slice)];
    if (call == kNone<SliceId>) continue;
    const SliceId op = rules::outermost_operator_of(facts, call);
    if (op != kNone<SliceId> &&
        std::find(names.begin(), names.end(), facts.trace->name(op)) != names.end())
      windows.push_back({work.start_ns, work.end_ns});
  }
  return rules::total_length(std::move(windows));
}

}  // namespace

Sentence outer_loop_note(const Facts& facts) {
  constexpr std::int64_t kLeastPart = 20;   // a twentieth: logging takes less
  constexpr std::size_t kManyRounds = 256;  // programs log more often than that
  constexpr std::size_t kFewestRounds = 8, kFewestOperators = 3;
  const auto& steps = facts.steps.steps;
  if (!facts.steps.found || facts.steps.found->kind != analysis::IterationMark::kWait ||
      steps.size() < 2 * kFewestRounds)
    return {};
  const Trace& trace = *facts.trace;
  const Track& thread = trace.track(steps.front().slice);
  // By operator: the iterations in which the program calls it, from 1; 0: before the first one.
  std::map<std::string_view, std::vector<std::size_t>> places;
  std::map<std::string_view, std::int64_t> times_ns;
  std::int64_t until_ns = std::numeric_limits<std::int64_t>::min();
  std::size_t step = 0;
  for (std::uint32_t i = thread.first_slice; i < thread.first_slice + thread.slice_count; ++i) {
    const SliceId op{i};
    if (trace.kind(op) != CategoryKind::kCpuOp || trace.start_ns(op) < until_ns ||
        !trace.name(op).starts_with("aten::"))
      continue;
    until_ns = trace.end_ns(op);
    while (step < steps.size() && steps[step].cpu_start_ns <= trace.start_ns(op)) ++step;
    std::vector<std::size_t>& of_op = places[trace.name(op)];
    if (of_op.empty() || of_op.back() != step) of_op.push_back(step);
    times_ns[trace.name(op)] += trace.dur_ns(op);
  }
  // Equal distances, also from the begin and to the end: 25 % more at most.
  const auto rounds_between = [&](const std::vector<std::size_t>& at) -> std::size_t {
    std::size_t least = ~std::size_t{0}, most = 0;
    for (std::size_t i = 1; i < at.size(); ++i) {
      least = std::min(least, at[i] - at[i - 1]);
      most = std::max(most, at[i] - at[i - 1]);
    }
    if (at.size() < 2 || least < kFewestRounds) return 0;
    most = std::max({most, at.front(), steps.size() + 1 - at.back()});
    return most * 4 <= least * 5 ? least : 0;
  };
  std::map<std::vector<std::size_t>, std::vector<std::string_view>> together;
  for (const auto& [op, at] : places)
    if (rounds_between(at) > 0) together[at].push_back(op);
  const auto most = std::max_element(
      together.begin(), together.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (most == together.end() || most->second.size() < kFewestOperators) return {};
  std::int64_t cpu_ns = 0;
  for (const std::string_view op : most->second) cpu_ns += times_ns[op];
  if (rounds_between(most->first) < kManyRounds &&
      std::max(cpu_ns, device_time_of(facts, most->second)) * kLeastPart <
          steps.back().cpu_end_ns - steps.front().cpu_start_ns)
    return {};
  const std::string_view longest =
      *std::max_element(most->second.begin(), most->second.end(),
                        [&](auto a, auto b) { return times_ns[a] < times_ns[b]; });
  return say(
      " They may be rounds inside a longer loop: {} and {} other operators run once in about "
      "{} of them.",
      {name(longest), count(most->second.size() - 1), count(rounds_between(most->first))});
}

namespace {

// Do first uses of libraries and kernels take a tenth of this time or more?
bool holds_first_uses(const Facts& facts, const analysis::Window& before) {
  constexpr std::int64_t kLeastPart = 10;
  if (!facts.main_device) return false;
  std::vector<analysis::Window> first_uses;
  for (const SliceId call : rules::first_use_calls(facts))
    if (facts.trace->start_ns(call) < before.end_ns)
      first_uses.push_back({facts.trace->start_ns(call), facts.trace->end_ns(call)});
  return rules::total_length(std::move(first_uses)) * kLeastPart >= before.length_ns();
}

// Does this part of the time on the CPU differ from iterations of that length?
bool is_start_up(const Facts& facts, const analysis::Window& before) {
  const auto is_longer = [](std::int64_t time_ns, std::int64_t usual_ns) {
    return time_ns * 2 > usual_ns * 3;
  };
  const auto& steps = facts.steps.steps;
  std::vector<std::int64_t> lengths_ns;
  for (const std::size_t step : facts.selection.steady)
    lengths_ns.push_back(steps[step].cpu_end_ns - steps[step].cpu_start_ns);
  const std::int64_t usual_ns = analysis::median_of_steps(std::move(lengths_ns));
  if (is_longer(steps.front().cpu_start_ns - before.start_ns, usual_ns)) return true;
  for (std::size_t i = 0; i < facts.selection.steady.front(); ++i)
    if (is_longer(steps[i].cpu_end_ns - steps[i].cpu_start_ns, usual_ns)) return true;
  return holds_first_uses(facts, before);
}

}  // namespace

std::optional<BeforeIterations> time_before_iterations(const Facts& facts) {
  if (!facts.steps.found || facts.selection.one_chosen || facts.selection.steady.empty())
    return std::nullopt;
  const analysis::StepRange& first = facts.steps.steps[facts.selection.steady.front()];
  const Track& thread = facts.trace->track(facts.trace->slices().track[raw(first.slice)]);
  const analysis::Window window{facts.trace->start_ns(SliceId{thread.first_slice}),
                                first.cpu_start_ns};
  if (window.length_ns() <= 0) return std::nullopt;
  const bool is_other_phase =
      facts.steps.found->before.count > 0 && !holds_first_uses(facts, window);
  return BeforeIterations{window, !is_other_phase && is_start_up(facts, window), is_other_phase};
}

Sentence start_up_note(const Facts& facts) {
  const auto before = time_before_iterations(facts);
  if (!before || !before->is_start_up) return {};
  const analysis::Window* window = &before->window;
  constexpr std::size_t kMostParts = 3;
  const SliceId mark = facts.steps.steps[facts.selection.steady.front()].slice;
  Sentence note = say("The first {}, before the iterations that are measured, are start-up:",
                      {ns(window->length_ns())});
  std::size_t listed = 0;
  for (const HostShare& share :
       host_shares(facts, {{facts.trace->slices().track[raw(mark)], window->start_ns,
                            window->end_ns, kNone<SliceId>}})) {
    if (listed == kMostParts || share.time_ns * 20 < window->length_ns()) break;
    const Sentence what = describe(share);
    note.pattern += (listed == 0 ? " {} " : ", {} ") + what.pattern;
    note.values.push_back(ns(share.time_ns));
    note.values.insert(note.values.end(), what.values.begin(), what.values.end());
    ++listed;
  }
  if (listed == 0)
    note.pattern.back() = '.';
  else
    note.pattern += ".";
  return note;
}

}  // namespace lanescope::explain
