// The operators right before and after a call.
#pragma once
#include <cstdint>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

inline constexpr std::uint32_t kFurthestCall = 160;  // slices, Python frames among them

// Calls the operators before this one that lie in the same event, the nearest first, until `look` returns false.
template <typename Look>
void each_before(const Facts& facts, SliceId op, Look look) {
  const Trace& trace = *facts.trace;
  const SliceId around = facts.nesting.parent[raw(op)];
  // What comes before an event does not lie in it.
  const std::uint32_t first =
      around == kNone<SliceId> ? trace.track(op).first_slice : raw(around) + 1;
  for (std::uint32_t i = raw(op); i > first && raw(op) - i < kFurthestCall; --i)
    if (trace.kind(SliceId{i - 1}) == CategoryKind::kCpuOp &&
        facts.nesting.parent[i - 1] == around && !look(SliceId{i - 1}))
      return;
}

// The next operator that lies in the same event; kNone: none is near.
SliceId next_call(const Facts& facts, SliceId op);

}  // namespace lanescope::explain::rules
