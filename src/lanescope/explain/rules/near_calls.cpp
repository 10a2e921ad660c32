#include "lanescope/explain/rules/near_calls.h"

#include <algorithm>

namespace lanescope::explain::rules {

SliceId next_call(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(op);
  const std::uint32_t last =
      std::min(track.first_slice + track.slice_count, raw(op) + kFurthestCall);
  const SliceId around = facts.nesting.parent[raw(op)];
  for (std::uint32_t i = raw(op) + 1; i < last; ++i) {
    if (around != kNone<SliceId> && trace.start_ns(SliceId{i}) > trace.end_ns(around)) break;
    if (trace.kind(SliceId{i}) == CategoryKind::kCpuOp && facts.nesting.parent[i] == around)
      return SliceId{i};
  }
  return kNone<SliceId>;
}

}  // namespace lanescope::explain::rules
