// The findings to act on first.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/run_rules.h"

namespace lanescope::explain {

inline constexpr std::size_t kMostSuggestions = 3;

struct Suggestion {
  std::size_t finding = 0;  // index in Explanation::findings
  // Per step: the predicted gain, else the time at stake, at most the step without the profiler;
  // 0: no time.
  std::int64_t gain_ns = 0;
  double gain_ratio = 0;        // of that step, at most 1
  bool is_predicted = false;    // gain_ns is what a replay of the step gains
  std::int64_t at_most_ns = 0;  // the time at stake, when gain_ns is predicted
  // For a gain of the CPU's work: its part of the error of the step without the profiler, if that is a fifth of the gain or more;
  // else 0. An upper limit has it, too, because it is only as exact as that step; 0 if the error is more than the limit itself.
  std::int64_t error_ns = 0;
  bool is_range = false;           // replays say gain_ns +- error_ns, and at most at_most_ns
  std::int64_t step_error_ns = 0;  // of the step that gain_ratio refers to
  Sentence verdict, action;        // one line each
  Sentence place;                  // in the user's code (user_code.h); empty: unknown
};

// At most kMostSuggestions, in this order: what ends the program; what took longer than all other
// steps together; what fills its memory; then costs of kLeastGain of a step or more, largest first.
// What bounds the step, and idle time in general, count as costs only if no other cost has half as
// much at stake (with three costs or more: a quarter). Findings that only say where time is, that
// something is normal, or what the recording lacks are never suggestions. A cost with a predicted
// gain counts with that gain, and leaves the list when it is below kLeastGain. Launches in general
// are left out where a cause that is listed leaves less than a quarter of the waiting that they
// would gain, and an operator is listed once.
// docs/definitions/explain.md#do-first
std::vector<Suggestion> do_first(const Facts& facts, const Explanation& explanation);
inline constexpr double kLeastGain = 0.01;
inline constexpr double kWorthwhileGain = 0.05;  // of a step: with less, there is little to gain

class GainModel;

// How long the CPU takes without the profiler is less sure than how long the GPU does. A gain has as much of that error as
// it has of the step's time beyond the GPU's work. 0: less than a fifth of the gain.
std::int64_t error_of_gain(const GainModel& gains, const Finding& finding, std::int64_t gain_ns);

// The finding says why time is lost: it is not about idle time, launches or what bounds the step in general.
bool names_cause(const Finding& finding);

// The gain of all suggestions with a predicted gain together. Nothing: fewer than two have one, or
// their sum is unsure. `numbers`: their places in the list, from 1.
struct Together {
  std::vector<std::size_t> numbers;
  std::int64_t gain_ns = 0;
};
std::optional<Together> gain_together(const Explanation& explanation,
                                      const std::vector<Suggestion>& first);

}  // namespace lanescope::explain
