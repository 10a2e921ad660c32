// The findings to act on first, and where the time goes if there is none.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/run_rules.h"

namespace lanescope::explain {

inline constexpr std::size_t kMostSuggestions = 3;

struct Suggestion {
  std::size_t finding = 0;   // index in Explanation::findings
  std::int64_t gain_ns = 0;  // per step: the time at stake, at most the step; 0: no time
  double gain_ratio = 0;     // of a step's wall, at most 1
  Sentence verdict, action;  // one line each
  Sentence place;            // in the user's code (user_code.h); empty: unknown
};

// At most kMostSuggestions, in this order: what ends the program; what took longer than all other
// steps together; what fills its memory; then costs of kLeastGain of a step or more, largest first.
// The bound itself, and idle time in general, are among the costs only if no cost has half as much
// at stake (with three costs or more: a quarter). Findings that only say where time is, that
// something is normal, or what the recording lacks are never suggestions.
// docs/definitions/explain.md#do-first
std::vector<Suggestion> do_first(const Facts& facts, const Explanation& explanation);
inline constexpr double kLeastGain = 0.01;

// Who holds most of a step, at most three, largest first: the owners (owners.h). In traces without
// the launch calls of the GPU work: kernels by readable name. Empty: nothing takes a twentieth of
// the step.
struct TimeTaker {
  Sentence what;
  std::int64_t per_step_ns = 0;
  double ratio = 0;                  // of a step's wall
  SliceId example = kNone<SliceId>;  // an event of it; kNone: none
};
std::vector<TimeTaker> largest_time_takers(const Facts& facts);

}  // namespace lanescope::explain
