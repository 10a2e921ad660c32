// The window of each step of a trace, for questions about one step. Finding them needs all events, so they are kept next to the
// index of a trace: a step is then read like any window. Defined in docs/definitions/reading.md#a-part-of-a-trace.
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

// What the analyses of a step alone read of the trace: all slices that touch `calls`, but of streams those that touch `work`.
// Empty windows: only the whole trace gives the same answer.
struct StepNeeds {
  TraceWindow calls, work;
  bool are_known() const { return calls.start_ns < calls.end_ns; }
  bool operator==(const StepNeeds&) const = default;
};

struct StepWindow {
  std::int64_t number = 0;  // docs/definitions/steps.md#step
  TraceWindow window;
  StepNeeds needs = {};  // of step_needs.h
  bool operator==(const StepWindow&) const = default;
};

// In order of time. From the start of a step's range on the CPU, or of its time on a device, to the
// later end of the two. Empty: the trace marks no steps, and none were found.
std::vector<StepWindow> step_windows(const explain::Facts& facts);
// The first of that number. Null: there is none.
const StepWindow* find_step(const std::vector<StepWindow>& steps, std::int64_t number);
// The same as a window. kInvalidArgument: there is none; the message begins with "step".
Result<TraceWindow> window_of_step(const std::vector<StepWindow>& steps, std::int64_t number);

// The key of notes of steps in an index. It names the build of the sources that find steps, so another build ignores them.
std::string steps_layer();
// As text for a note next to an index. Nothing: there are so many steps that reading them saves no time.
std::optional<std::string> note_of_steps(const std::vector<StepWindow>& steps);
// Nothing: no note of note_of_steps().
std::optional<std::vector<StepWindow>> steps_of_note(std::string_view note);

}  // namespace lanescope::view
