// A parent comes before its children in a Trace, so one pass passes phases down. Names repeat: each
// distinct one is checked once.
#include "lanescope/analysis/training_phases.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <unordered_map>

#include "lanescope/names/training_ranges.h"

namespace lanescope::analysis {
namespace {

// "MulBackward0", "torch::autograd::CopyBackwards", "CompiledFunctionBackward": a node of the
// backward graph, in files without the engine's ranges.
bool is_backward_node(std::string_view name) {
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())))
    name.remove_suffix(1);
  return !name.starts_with("aten::") && (name.ends_with("Backward") || name.ends_with("Backwards"));
}

Phase phase_of_name(std::string_view name) {
  if (names::is_data_loader(name)) return Phase::kLoader;
  if (names::is_optimizer_step(name)) return Phase::kOptimizer;
  if (name.starts_with("Optimizer.zero_grad#")) return Phase::kZeroGrad;
  if (name.starts_with("autograd::engine::evaluate_function") ||
      name == "torch::autograd::AccumulateGrad" || is_backward_node(name))
    return Phase::kBackward;
  return Phase::kOther;
}

// A step that is given a closure (Lightning, LBFGS) runs forward and backward inside Optimizer.step: only
// what comes after the last backward node there is the optimizer's.
void split_closures(const Trace& trace, const SliceNesting& nesting, std::vector<Phase>& phases) {
  const auto is_front = [&](std::uint32_t i) { return is_front_end(trace.kind(SliceId{i})); };
  std::unordered_map<std::uint32_t, std::int64_t> last_backward_ns;  // by raw id of the range
  std::vector<std::uint32_t> range_of(phases.size(), raw(kNone<SliceId>));
  for (std::uint32_t i = 0; i < phases.size(); ++i) {
    const SliceId parent = nesting.parent[i];
    if (phases[i] != Phase::kOptimizer) continue;
    const bool is_inside = parent != kNone<SliceId> && phases[raw(parent)] == Phase::kOptimizer;
    if (is_inside) range_of[i] = range_of[raw(parent)];  // of Python frames, too
    if (!is_front(i)) continue;
    if (!is_inside) range_of[i] = i;
    if (phase_of_name(trace.name(SliceId{i})) != Phase::kBackward) continue;
    std::int64_t& last = last_backward_ns[range_of[i]];
    last = std::max(last, trace.end_ns(SliceId{i}));
  }
  if (last_backward_ns.empty()) return;
  for (std::uint32_t i = 0; i < phases.size(); ++i) {
    const auto closure = last_backward_ns.find(range_of[i]);
    if (closure == last_backward_ns.end()) continue;
    if (i == range_of[i]) {
      phases[i] = Phase::kOther;
      continue;
    }
    if (trace.start_ns(SliceId{i}) >= closure->second) continue;
    const SliceId parent = nesting.parent[i];
    const Phase named = phase_of_name(trace.name(SliceId{i}));
    phases[i] = named != Phase::kOther                                   ? named
                : parent != kNone<SliceId> && raw(parent) != range_of[i] ? phases[raw(parent)]
                                                                         : Phase::kOther;
  }
}

}  // namespace

std::vector<Phase> compute_training_phases(const Trace& trace, const LaunchLinks& links,
                                           const SliceNesting& nesting) {
  constexpr std::uint8_t kNotSeen = 255;
  std::vector<std::uint8_t> by_name(trace.strings().size(), kNotSeen);
  const auto named = [&](SliceId id) {
    const StringId name = trace.slices().name[raw(id)];
    if (name == kNone<StringId>) return Phase::kOther;
    std::uint8_t& known = by_name[raw(name)];
    if (known == kNotSeen) known = static_cast<std::uint8_t>(phase_of_name(trace.text(name)));
    return static_cast<Phase>(known);
  };
  std::vector<Phase> phases(trace.slices().size(), Phase::kOther);
  for (std::uint32_t i = 0; i < phases.size(); ++i) {
    const SliceId id{i}, parent = nesting.parent[i];
    if (parent != kNone<SliceId>) phases[i] = phases[raw(parent)];
    if (phases[i] == Phase::kOther && is_front_end(trace.kind(id))) phases[i] = named(id);
  }
  split_closures(trace, nesting, phases);
  for (std::uint32_t i = 0; i < phases.size(); ++i) {
    if (!is_on_stream(trace.kind(SliceId{i}))) continue;
    const SliceId cause =
        links.launch_of[i] != kNone<SliceId> ? links.launch_of[i] : links.op_of[i];
    if (cause != kNone<SliceId>) phases[i] = phases[raw(cause)];
  }
  return phases;
}

}  // namespace lanescope::analysis
