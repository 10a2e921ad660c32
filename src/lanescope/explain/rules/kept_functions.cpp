#include "lanescope/explain/rules/kept_functions.h"

#include <algorithm>
#include <cstdint>
#include <unordered_set>

#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/frames_around.h"
#include "lanescope/explain/loop_sizes.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/names/python_frame.h"

namespace lanescope::explain::rules {

namespace {

SliceId function_around(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  SliceId found = kNone<SliceId>;
  frames_around(facts).visit(op, [&](SliceId frame) {
    if (trace.kind(frame) != CategoryKind::kPythonFunction ||
        !names::read_python_frame(trace.name(frame)).is_of_program())
      return false;
    found = frame;
    return true;
  });
  return found;
}

struct WithNodes {
  std::unordered_set<std::uint32_t>
      calls;  // that made nodes of the backward pass, and what is around them
};

WithNodes make_calls_with_nodes(const Facts& facts) {
  WithNodes found;
  for (const AutogradPair& pair : autograd_pairs(facts))
    for (SliceId up = pair.forward; up != kNone<SliceId>; up = facts.nesting.parent[raw(up)])
      found.calls.insert(raw(up));
  return found;
}

}  // namespace

std::vector<SliceId> calls_of_kept_function(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const SliceId function = function_around(facts, op);
  if (function == kNone<SliceId>) return {};
  const WithNodes& with_nodes = made_once<make_calls_with_nodes>(facts);
  std::vector<SliceId> found;
  for (const CallSequence& calls : call_sequences(facts)) {
    if (calls.empty() || trace.slices().track[raw(calls.front())] != trace.slices().track[raw(op)])
      continue;
    auto call = std::lower_bound(
        calls.begin(), calls.end(), trace.start_ns(function),
        [&](SliceId each, std::int64_t start_ns) { return trace.start_ns(each) < start_ns; });
    for (; call != calls.end() && trace.start_ns(*call) < trace.end_ns(function); ++call) {
      if (is_layer_operator(trace.name(*call)) || with_nodes.calls.contains(raw(*call))) return {};
      found.push_back(*call);
    }
  }
  return found;
}

}  // namespace lanescope::explain::rules
