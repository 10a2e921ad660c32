#include "lanescope/explain/left_out_steps.h"

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
  note.values.push_back(count(launches.lost_at_end()));
  note.values.push_back(
      ns(trace.start_ns(launches.calls[launches.recorded]) - trace.window_start_ns()));
  return note;
}

Sentence long_step_note(const Facts& facts) {
  const auto step = facts.selection.long_step;
  if (!step) return {};
  return say("Step {} took {}, longer than the other {} together, and is left out.",
             {step_number(facts, *step), ns(facts.step_window(*step).length_ns()),
              count(facts.selection.steady.size())});
}

}  // namespace lanescope::explain
