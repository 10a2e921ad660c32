// What an event belongs to: a training phase, compiled code, an event around it.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "lanescope/explain/enclosing_facts.h"
#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

struct CompiledFacts {
  const analysis::SliceNesting& nesting;  // with Python frames
  const analysis::CompiledCode& code;
};
CompiledFacts compiled_facts_of(const Facts& facts);

// The nearest ancestor, or itself, whose name `wanted` accepts; kNone: there is none. Python frames
// are no ancestors here.
template <typename Wanted>
SliceId ancestor_where(const Facts& facts, SliceId slice, Wanted wanted) {
  while (slice != kNone<SliceId> && !wanted(facts.trace->name(slice)))
    slice = facts.nesting.parent[raw(slice)];
  return slice;
}
// The same: whose name starts with `prefix`.
SliceId ancestor_named(const Facts& facts, SliceId slice, std::string_view prefix);

// Does `wanted` accept the name of a slice inside of this one?
template <typename Wanted>
bool any_inside(const Facts& facts, SliceId slice, Wanted wanted) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(slice);
  for (std::uint32_t i = raw(slice) + 1; i < track.first_slice + track.slice_count &&
                                         trace.start_ns(SliceId{i}) < trace.end_ns(slice);
       ++i)
    if (wanted(trace.name(SliceId{i}))) return true;
  return false;
}

// The name of the innermost nn.Module around a call, with its number: "nn.Module: Linear_3". Empty: not recorded.
std::string_view module_around(const Trace& trace, SliceId call);

// Inside of an operator on sparse tensors, or such an operator: what it does there is torch's, not the program's.
bool is_in_sparse(const Facts& facts, SliceId op);

// The operator that the program called, in which this operator runs, or itself. Marks of steps are none.
SliceId outermost_around(const Facts& facts, SliceId op);

}  // namespace lanescope::explain::rules
