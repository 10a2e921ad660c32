#include "lanescope/explain/rules/enclosing_events.h"

#include "lanescope/explain/user_code.h"

namespace lanescope::explain::rules {

CompiledFacts compiled_facts_of(const Facts& facts) {
  return {nesting_with_frames(facts), compiled_code(facts)};
}

bool is_in_sparse(const Facts& facts, SliceId op) {
  return ancestor_where(facts, op, [](std::string_view name) {
           return name.starts_with("aten::_sparse") || name.starts_with("aten::sparse") ||
                  name.starts_with("aten::_coalesce") || name.starts_with("aten::coalesce");
         }) != kNone<SliceId>;
}

SliceId ancestor_named(const Facts& facts, SliceId slice, std::string_view prefix) {
  return ancestor_where(facts, slice,
                        [prefix](std::string_view name) { return name.starts_with(prefix); });
}

SliceId outermost_around(const Facts& facts, SliceId op) {
  SliceId found = op;
  for (SliceId up = facts.nesting.parent[raw(op)]; up != kNone<SliceId>;
       up = facts.nesting.parent[raw(up)])
    if (facts.trace->kind(up) == CategoryKind::kCpuOp &&
        !facts.trace->name(up).starts_with("ProfilerStep"))
      found = up;
  return found;
}

std::string_view module_around(const Trace& trace, SliceId call) {
  constexpr std::uint32_t kMostLooked = 256;
  const std::uint32_t begin = trace.track(call).first_slice;
  for (std::uint32_t i = raw(call), looked = 0; i-- > begin && looked < kMostLooked; ++looked) {
    const SliceId frame{i};
    if (trace.kind(frame) == CategoryKind::kPythonFunction && is_module_frame(trace.name(frame)) &&
        trace.end_ns(frame) >= trace.end_ns(call))
      return trace.name(frame);
  }
  return {};
}

}  // namespace lanescope::explain::rules
