#include "lanescope/explain/left_out_steps.h"

#include <string>

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

Sentence found_iterations_note(const Facts& facts) {
  const auto& found = facts.steps.found;
  if (!found) return {};
  const std::string begin = "The trace marks no steps: a step here is an iteration, from ";
  const Value how_many = linked(count(found->ranges.size()), shows::kStep);
  if (found->kind == analysis::IterationMark::kRangeEnd && !found->owner.empty())
    return say("The trace marks no steps: a step here is an iteration of {} {}, {} found.",
               {text(found->owner), name(found->mark), how_many});
  if (found->kind == analysis::IterationMark::kRangeEnd)
    return say(begin + "the end of one {} to the end of the next, {} found.",
               {name(found->mark), how_many});
  if (found->waits > 1)
    return found->owner.empty()
               ? say("The trace marks no steps: a step here is an iteration of {} {}, {} found.",
                     {count(found->waits), name(found->mark), how_many})
               : say("The trace marks no steps: a step here is an iteration of {} {} in {}, {} "
                     "found.",
                     {count(found->waits), name(found->mark), name(found->owner), how_many});
  if (found->kind == analysis::IterationMark::kWait && !found->owner.empty())
    return say(begin + "one {} in {} to the next, {} found.",
               {name(found->mark), name(found->owner), how_many});
  return say(begin + "one {} to the next, {} found.", {name(found->mark), how_many});
}

std::optional<analysis::Window> start_up_before_iterations(const Facts& facts) {
  if (!facts.steps.found || facts.selection.one_chosen || facts.selection.steady.empty())
    return std::nullopt;
  const analysis::StepRange& first = facts.steps.steps[facts.selection.steady.front()];
  const Track& thread = facts.trace->track(facts.trace->slices().track[raw(first.slice)]);
  const analysis::Window window{facts.trace->start_ns(SliceId{thread.first_slice}),
                                first.cpu_start_ns};
  return window.length_ns() > 0 ? std::optional(window) : std::nullopt;
}

Sentence start_up_note(const Facts& facts) {
  const auto window = start_up_before_iterations(facts);
  if (!window) return {};
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
