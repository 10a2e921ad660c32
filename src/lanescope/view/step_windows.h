// The window of each step of a trace, for questions about one step. Finding the windows needs all events, so they are saved next
// to the index of the trace. Later, a step is read like any other window. Defined in docs/definitions/reading.md#a-part-of-a-trace.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/explain/facts.h"

namespace lanescope::view {

// Nanoseconds of the trace, half-open.
struct TraceWindow {
  std::int64_t start_ns = 0, end_ns = 0;
  bool operator==(const TraceWindow&) const = default;
};

// What must be read of the trace to analyse one step alone: slices of streams that touch `work`, and other slices that touch
// `calls`.
// Empty windows: only the whole trace gives the same answer.
struct StepNeeds {
  TraceWindow calls, work;
  bool are_known() const { return calls.start_ns < calls.end_ns; }
  bool operator==(const StepNeeds&) const = default;
};

struct StepWindow {
  std::int64_t number = 0;  // docs/definitions/steps.md#step
  TraceWindow window;
  StepNeeds needs = {};  // from step_needs()
  bool operator==(const StepWindow&) const = default;
};

// In order of time. From the start of a step's range on the CPU, or of its time on a device, to the
// later end of the two. Empty: the trace marks no steps, and none were found.
std::vector<StepWindow> step_windows(const explain::Facts& facts);
// The first step with that number. Null: there is none.
const StepWindow* find_step(const std::vector<StepWindow>& steps, std::int64_t number);
// The window of that step. kInvalidArgument: there is no such step; the message begins with "step".
Result<TraceWindow> window_of_step(const std::vector<StepWindow>& steps, std::int64_t number);

// The key of the note of steps in an index. It has a hash of the sources that find steps: a build from other sources ignores it.
std::string steps_layer();
// The steps as a note for an index. Nothing: there are so many steps that reading the note would save no time.
std::optional<std::string> note_of_steps(const std::vector<StepWindow>& steps);
// Nothing: note_of_steps() did not write this note.
std::optional<std::vector<StepWindow>> steps_of_note(std::string_view note);

}  // namespace lanescope::view
