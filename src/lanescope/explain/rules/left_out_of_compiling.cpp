#include "lanescope/explain/rules/left_out_of_compiling.h"

#include <algorithm>
#include <string_view>

#include "lanescope/analysis/compiled_regions.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain::rules {
namespace {

constexpr char kCompiledBackward[] =
    "autograd::engine::evaluate_function: CompiledFunctionBackward";

bool is_wrapper(std::string_view frame) {
  return frame.find("torch/_dynamo/eval_frame.py(") != frame.npos && frame.ends_with("): _fn");
}

bool is_own_function(const Facts& facts, SliceId slice) {
  const names::PythonFrame* const frame = facts.frames.find(facts.trace->slices().name[raw(slice)]);
  return frame && !frame->is_module && !frame->is_of_library;
}

}  // namespace

SliceId left_out_function(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  if (op == kNone<SliceId> ||
      ancestor_named(facts, op, analysis::kCompiledRegion) == kNone<SliceId>)
    return kNone<SliceId>;
  // Events around the operator, from the innermost: those of the thread that end after it.
  SliceId inner = kNone<SliceId>;
  const std::uint32_t first = trace.track(op).first_slice;
  for (std::uint32_t i = raw(op); i-- > first;) {
    const SliceId around{i};
    if (trace.end_ns(around) < trace.end_ns(op)) continue;
    if (analysis::is_compiled_region(trace.name(around))) break;
    if (trace.kind(around) != CategoryKind::kPythonFunction) continue;
    if (inner != kNone<SliceId> && is_wrapper(trace.name(around))) return inner;
    inner = is_own_function(facts, around) ? around : kNone<SliceId>;
  }
  return kNone<SliceId>;
}

bool is_compiled_to_operators(const Facts& facts, SliceId op) {
  if (op == kNone<SliceId> ||
      (ancestor_named(facts, op, analysis::kCompiledRegion) == kNone<SliceId> &&
       ancestor_named(facts, op, kCompiledBackward) == kNone<SliceId>))
    return false;
  const auto& work = facts.device().timeline.work;
  return std::none_of(work.begin(), work.end(), [&](const analysis::DeviceWork& each) {
    return facts.trace->name(each.slice).starts_with("triton_");
  });
}

bool advise_on_left_out(const Facts& facts, SliceId example, Finding& finding) {
  const SliceId function = left_out_function(facts, example);
  if (function == kNone<SliceId>) return false;
  finding.action = say("{} is left out of compiled code: remove torch.compiler.disable from it",
                       {name(function_first(short_line(facts.trace->name(function))))});
  finding.try_next.insert(
      finding.try_next.begin(),
      "compiled code calls this function through Dynamo's wrapper, uncompiled: "
      "torch.compiler.disable, or what torch._dynamo cannot trace; torch._dynamo.explain(f)(*args) "
      "tells which");
  return true;
}

}  // namespace lanescope::explain::rules
