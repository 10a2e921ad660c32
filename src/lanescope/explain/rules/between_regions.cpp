#include "lanescope/explain/rules/between_regions.h"

#include <map>
#include <string_view>

#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/sentences.h"

namespace lanescope::explain::rules {

using analysis::CompiledCall;
using analysis::CompileLayer;
using analysis::runs_compiled_code;

namespace {

// Operators that Dynamo does not trace by default, because Python needs their values or the sizes that follow from them.
struct KnownBreak {
  std::string_view op;
  const char* action;
};
constexpr char kValueInPython[] =
    "Keep the value a tensor there (torch.where), or read it after the compiled call";
constexpr char kSizeOfData[] =
    "Its result has a size that depends on data: keep all rows, with a mask (torch.where)";
constexpr KnownBreak kKnownBreaks[] = {
    {"aten::item", kValueInPython},       {"aten::_local_scalar_dense", kValueInPython},
    {"aten::is_nonzero", kValueInPython}, {"aten::equal", kValueInPython},
    {"aten::nonzero", kSizeOfData},       {"aten::masked_select", kSizeOfData},
    {"aten::_unique2", kSizeOfData},      {"aten::unique_consecutive", kSizeOfData},
    {"aten::unique_dim", kSizeOfData},
};

}  // namespace

SliceId eager_before(const Facts& facts, const CompiledFacts& compiled, const CompiledCall& call) {
  const Trace& trace = *facts.trace;
  const auto& layer = compiled.code.layer;
  const std::size_t step = steady_step_at(facts, trace.start_ns(call.slice));
  SliceId found = kNone<SliceId>;
  for (std::uint32_t i = raw(call.slice); i-- > trace.track(call.slice).first_slice;) {
    const SliceId id{i};
    if (facts.steps.marked && steady_step_at(facts, trace.start_ns(id)) != step)
      return kNone<SliceId>;
    if (!is_front_end(trace.kind(id))) continue;
    const bool is_over = trace.end_ns(id) <= trace.start_ns(call.slice);
    // This compiled code is the last before the call: the search ends here.
    if (is_over && (layer[i] == CompileLayer::kGraph || runs_compiled_code(trace.name(id))))
      return found;
    if (!is_over || found != kNone<SliceId> || trace.kind(id) != CategoryKind::kCpuOp ||
        (layer[i] != CompileLayer::kNone && layer[i] != CompileLayer::kRegion))
      continue;
    found = id;  // then the outermost operator around it: aten::item, not what it calls
    for (SliceId up = compiled.nesting.parent[i];
         up != kNone<SliceId> && !runs_compiled_code(trace.name(up));
         up = compiled.nesting.parent[raw(up)])
      if (trace.kind(up) == CategoryKind::kCpuOp && trace.end_ns(up) <= trace.start_ns(call.slice))
        found = up;
  }
  return kNone<SliceId>;
}

BreakCause break_cause(const Facts& facts, const CompiledFacts& compiled, bool only_nested) {
  const auto windows = facts.steady_cpu_windows();
  std::map<std::string_view, BreakCause> by_op;
  std::uint64_t regions = 0;
  for (const CompiledCall& call : compiled.code.calls) {
    if ((only_nested && call.around == kNone<SliceId>) ||
        (facts.steps.marked && !inside(windows, facts.trace->start_ns(call.slice))))
      continue;
    const SliceId before = eager_before(facts, compiled, call);
    if (before == kNone<SliceId> && !only_nested) continue;  // perhaps no compiled code came before
    ++regions;
    if (before == kNone<SliceId>) continue;
    BreakCause& cause = by_op[facts.trace->name(before)];
    if (cause.breaks++ == 0) cause.example = before;
  }
  for (auto& [op, cause] : by_op)
    if (cause.breaks * 2 >= regions) {
      cause.op = std::string(op);
      return cause;
    }
  return {};
}

namespace {

const KnownBreak* known_break(const std::string& op) {
  for (const KnownBreak& known : kKnownBreaks)
    if (op == known.op) return &known;
  return nullptr;
}

}  // namespace

bool is_known_break(const std::string& op) { return known_break(op) != nullptr; }

Sentence advice_on_break(const std::string& op) {
  if (const KnownBreak* known = known_break(op)) return say(known->action);
  return say("Run with TORCH_LOGS=graph_breaks to see the lines; remove .item() and print there");
}

}  // namespace lanescope::explain::rules
