#include "lanescope/explain/rules/backward_work.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/products.h"
#include "lanescope/names/collective_calls.h"

namespace lanescope::explain::rules {
namespace {

constexpr std::int64_t kFarLonger = 20;  // times the forward part

// Operator, node and shapes: what makes calls equal.
using CallKey = std::tuple<std::string_view, std::string_view, std::optional<StringId>>;

CallKey key_of(const Trace& trace, const AutogradPair& pair) {
  return {trace.name(pair.forward), trace.name(pair.nodes.front()),
          trace.slice_args(pair.forward).text(ArgKey::kInputDims)};
}

bool is_collective(std::string_view called) {
  return names::is_collective_call(called) || called.starts_with("FSDP::");
}

// mm of [64, 256] runs as matmul of [24, 64, 256] under vmap: its caller's shape, and a dimension before it.
// select_backward, which selects from a larger tensor, is no vmap.
bool adds_a_dimension(const Trace& trace, SliceId op, SliceId caller) {
  const std::string_view name = trace.name(op), of_caller = trace.name(caller);
  if (name != of_caller && !(is_product(name) && is_product(of_caller))) return false;
  const auto inner = operator_inputs(trace, op).tensor(0);
  const auto outer = operator_inputs(trace, caller).tensor(0);
  return inner && outer && outer->rank() > 0 && inner->rank() == outer->rank() + 1 &&
         inner->dims.front() > 1 &&
         std::equal(outer->dims.begin(), outer->dims.end(), inner->dims.begin() + 1);
}

}  // namespace

void take_shortest_of_equals(const Facts& facts, std::vector<AutogradPair>& pairs) {
  const Trace& trace = *facts.trace;
  struct Equals {
    std::vector<std::int64_t> forward_ns, backward_ns;
  };
  std::map<CallKey, Equals> equals;
  for (const AutogradPair& pair : pairs) {
    Equals& same = equals[key_of(trace, pair)];
    same.forward_ns.push_back(pair.forward_ns);
    same.backward_ns.push_back(pair.backward_ns);
  }
  for (auto& [key, same] : equals) {
    std::sort(same.forward_ns.begin(), same.forward_ns.end());
    std::sort(same.backward_ns.begin(), same.backward_ns.end());
  }
  // Where half of the calls take more than twice the shortest, no call may have been left alone. That does not matter where
  // the shortest backward part is far longer than a usual forward part.
  std::erase_if(pairs, [&](AutogradPair& pair) {
    const Equals& same = equals.at(key_of(trace, pair));
    const std::int64_t median_ns = same.forward_ns[(same.forward_ns.size() - 1) / 2];
    pair.forward_ns = same.forward_ns.front();
    pair.backward_ns = same.backward_ns.front();
    if (median_ns <= 2 * pair.forward_ns) return false;
    pair.forward_ns = median_ns;
    return pair.backward_ns <= kFarLonger * median_ns;
  });
}

void erase_other_work(const Facts& facts, std::vector<AutogradPair>& pairs) {
  if (pairs.empty()) return;
  const Trace& trace = *facts.trace;
  std::unordered_set<std::uint32_t> nodes, has_other;
  for (const AutogradPair& pair : pairs)
    for (const SliceId node : pair.nodes) nodes.insert(raw(node));
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId op{i}, caller = facts.nesting.parent[i];
    if (caller == kNone<SliceId> || trace.kind(op) != CategoryKind::kCpuOp) continue;
    SliceId node = caller;
    while (node != kNone<SliceId> && !nodes.contains(raw(node)))
      node = facts.nesting.parent[raw(node)];
    if (node == kNone<SliceId>) continue;
    if ((!facts.main_device && is_collective(trace.name(op))) ||
        adds_a_dimension(trace, op, caller))
      has_other.insert(raw(node));
  }
  std::erase_if(pairs, [&](const AutogradPair& pair) {
    return std::any_of(pair.nodes.begin(), pair.nodes.end(),
                       [&](SliceId node) { return has_other.contains(raw(node)); });
  });
}

}  // namespace lanescope::explain::rules
