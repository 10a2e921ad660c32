// The ranges that torch.optim opens around each step of an optimizer ("Optimizer.step#AdamW.step").
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// All of the trace, in order of time. Made once for these Facts.
const std::vector<SliceId>& optimizer_steps(const Facts& facts);

// When they begin.
const std::vector<std::int64_t>& optimizer_steps_ns(const Facts& facts);

// The nearest step of an optimizer around this event, or the event itself if it is one; kNone: there is none. For an event of any
// kind that has a place in Facts::nesting. O(depth).
SliceId optimizer_step_around(const Facts& facts, SliceId slice);
inline bool is_in_optimizer_step(const Facts& facts, SliceId slice) {
  return optimizer_step_around(facts, slice) != kNone<SliceId>;
}

}  // namespace lanescope::explain::rules
