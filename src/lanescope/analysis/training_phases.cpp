// A parent comes before its children in a Trace, so one pass passes phases down. Names repeat: each
// distinct one is checked once.
#include "lanescope/analysis/training_phases.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <unordered_map>
#include <utility>

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

// When a node of autograd begins inside of a range of an optimizer's step on another thread.
struct NodesOfRange {
  std::uint32_t range = 0;  // raw id
  std::int64_t end_ns = 0;
  std::vector<std::int64_t> starts_ns;
};

// A node's thread is the GPU's, so that it lies in no range of the thread that called step().
std::vector<NodesOfRange> nodes_on_other_threads(const Trace& trace, const SliceNesting& nesting,
                                                 const std::vector<Phase>& phases) {
  std::vector<std::pair<std::int64_t, NodesOfRange>> ranges;  // by when they begin
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t i = 0; i < phases.size(); ++i) {
    const SliceId id{i}, parent = nesting.parent[i];
    if (!is_front_end(trace.kind(id))) continue;
    const bool is_inside = parent != kNone<SliceId> && phases[raw(parent)] == phases[i];
    if (phases[i] == Phase::kOptimizer && !is_inside)
      ranges.push_back({trace.start_ns(id), {i, trace.end_ns(id), {}}});
    if (phases[i] == Phase::kBackward && !is_inside) nodes.push_back(i);
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const std::uint32_t node : nodes) {
    const std::int64_t start_ns = trace.start_ns(SliceId{node});
    const auto after =
        std::upper_bound(ranges.begin(), ranges.end(), start_ns,
                         [](std::int64_t time, const auto& range) { return time < range.first; });
    if (after == ranges.begin()) continue;
    NodesOfRange& around = (after - 1)->second;
    if (start_ns < around.end_ns &&
        trace.slices().track[around.range] != trace.slices().track[node])
      around.starts_ns.push_back(start_ns);
  }
  std::vector<NodesOfRange> found;
  for (auto& [start_ns, range] : ranges) {
    if (range.starts_ns.empty()) continue;
    std::sort(range.starts_ns.begin(), range.starts_ns.end());
    found.push_back(std::move(range));
  }
  return found;
}

// True: only a closure calls this inside of an optimizer's step, which itself runs without gradients. Operators have a sequence
// number where gradients are recorded. A value may be read after the backward pass.
bool begins_closure(const Trace& trace, const SliceNesting& nesting, SliceId id) {
  const std::string_view name = trace.name(id);
  if (phase_of_name(name) == Phase::kZeroGrad) return true;
  const SliceId parent = nesting.parent[raw(id)];
  if (parent != kNone<SliceId> && trace.kind(parent) == CategoryKind::kCpuOp) return false;
  return trace.kind(id) == CategoryKind::kCpuOp && name != "aten::item" &&
         name != "aten::is_nonzero" && name != "aten::detach" && name != "aten::to" &&
         trace.slice_args(id).integer(ArgKey::kSequenceNumber).value_or(-1) >= 0;
}

// The same where the backward pass runs on another thread, as it does for a GPU. A step may call its closure several times (LBFGS): what
// lies between such a call and the next node that follows it is the closure's.
void split_closures_of_other_threads(const Trace& trace, const SliceNesting& nesting,
                                     std::vector<Phase>& phases) {
  for (const NodesOfRange& range : nodes_on_other_threads(trace, nesting, phases)) {
    const Track& track = trace.track(SliceId{range.range});
    const auto& nodes_ns = range.starts_ns;
    std::size_t next = 0;             // the first node that begins after the slice
    std::size_t last_of_closure = 0;  // `next` when the closure began
    bool in_closure = false, has_closure = false;
    for (std::uint32_t i = range.range + 1;
         i < track.first_slice + track.slice_count && trace.start_ns(SliceId{i}) < range.end_ns;
         ++i) {
      const SliceId id{i}, parent = nesting.parent[i];
      while (next < nodes_ns.size() && nodes_ns[next] <= trace.start_ns(id)) ++next;
      if (in_closure && next > last_of_closure) in_closure = false;
      if (!in_closure && next < nodes_ns.size() && begins_closure(trace, nesting, id)) {
        in_closure = has_closure = true;
        last_of_closure = next;
      }
      if (!in_closure || phases[i] != Phase::kOptimizer) continue;
      const Phase named = phase_of_name(trace.name(id));
      const Phase around = parent == kNone<SliceId> || raw(parent) == range.range ||
                                   phases[raw(parent)] == Phase::kOptimizer
                               ? Phase::kOther
                               : phases[raw(parent)];
      phases[i] = named != Phase::kOther ? named : around;
    }
    if (has_closure) phases[range.range] = Phase::kOther;
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
  split_closures_of_other_threads(trace, nesting, phases);
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
