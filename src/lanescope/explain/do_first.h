// The few findings that a reader should act on first, and where the time goes when there is none.
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
  std::int64_t gain_ns = 0;  // per step, at most: the stake, never more than the step; 0: no time
  double gain_ratio = 0;     // of a step's wall, at most 1
  Sentence verdict, action;  // one line each
  Sentence place;            // in the user's code (user_code.h); empty: the trace does not tell
};

// At most kMostSuggestions, in the order of the findings: what ends the program, what fills its
// memory, what took longer than all steps together, then what saves most time, from kLeastGain of a
// step on. The bound itself, and idle time in general, is one only where no cost explains half of
// it, or a quarter where three costs are known. Nothing that only says where time is, that
// something is normal or what the recording lacks. docs/definitions/explain.md#do-first
std::vector<Suggestion> do_first(const Facts& facts, const Explanation& explanation);
inline constexpr double kLeastGain = 0.01;

// What takes most of a step, the largest first, at most three: kernels by readable name; without
// GPU work, events of the CPU by the time in themselves. Empty: nothing takes a twentieth of it. A
// gap at the edge of the recording (edge-gap) is no part of the step here.
struct TimeTaker {
  Sentence what;
  std::int64_t per_step_ns = 0;
  double ratio = 0;                  // of a step's wall
  SliceId example = kNone<SliceId>;  // the first of the kernels; none: of the CPU
};
std::vector<TimeTaker> largest_time_takers(const Facts& facts);

}  // namespace lanescope::explain
