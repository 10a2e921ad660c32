// The same gradient is computed several times in a step: autograd.grad(u.sum(), x) is called for each column that is needed.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

constexpr double kLeastSameGradientShare = 0.05;
constexpr std::size_t kFewestSharedNodes = 4;

// A node of autograd: number, thread that made it, raw name.
using NodeKey = std::tuple<std::int64_t, std::int64_t, std::uint32_t>;

NodeKey node_key(const Trace& trace, SliceId node) {
  const ArgsView args = trace.slice_args(node);
  return {args.integer(ArgKey::kSequenceNumber).value_or(-1),
          args.integer(ArgKey::kFwdThreadId).value_or(0), raw(trace.slices().name[raw(node)])};
}

// The recorded input shapes of the operator inside the node.
std::string_view dims_of(const Trace& trace, SliceId node) {
  const std::uint32_t inside = raw(node) + 1;
  const Track& track = trace.track(node);
  if (inside >= track.first_slice + track.slice_count) return {};
  const auto dims = trace.slice_args(SliceId{inside}).text(ArgKey::kInputDims);
  return dims ? trace.text(*dims) : std::string_view{};
}

// A sum or mean of all elements: its gradients depend on the shape alone.
bool is_plain_root(const Trace& trace, SliceId node) {
  const std::string_view name = without_evaluate(trace.name(node));
  return (name == "SumBackward0" || name == "MeanBackward0") && dims_of(trace, node) == "[[]]";
}

// One tensor, and nothing that is absent: "[[32768, 1]]".
bool takes_one_tensor(std::string_view dims) {
  return dims.starts_with("[[") && dims.ends_with("]]") && dims.find("],") == dims.npos &&
         dims != "[[]]";
}

// What two passes must share to compute the same: name and inputs of the root, and all nodes after it.
using PassKey = std::tuple<std::size_t, std::uint32_t, std::string_view, std::vector<NodeKey>>;

std::optional<PassKey> pass_key(const Trace& trace, const BackwardPass& pass) {
  if (pass.nodes.size() <= kFewestSharedNodes || !is_plain_root(trace, pass.nodes[0]) ||
      !takes_one_tensor(dims_of(trace, pass.nodes[1])))
    return std::nullopt;
  std::vector<NodeKey> nodes;
  for (std::size_t i = 1; i < pass.nodes.size(); ++i)
    nodes.push_back(node_key(trace, pass.nodes[i]));
  if (std::get<0>(nodes.front()) < 0) return std::nullopt;
  return PassKey{pass.step, raw(trace.slices().name[raw(pass.nodes[0])]),
                 dims_of(trace, pass.nodes[1]), std::move(nodes)};
}

struct SameGradient {
  std::uint64_t groups = 0, passes = 0;     // all passes of groups of two or more
  std::size_t nodes = 0;                    // that the largest group shares
  std::unordered_set<std::uint32_t> again;  // nodes of all passes but the first of each group
  SliceId longest = kNone<SliceId>;
  std::int64_t cost_ns = 0;
};

std::optional<SameGradient> measure_same_gradient(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const std::vector<BackwardPass>& passes = backward_passes(facts);
  std::map<PassKey, std::vector<const BackwardPass*>> groups;
  for (const BackwardPass& pass : passes)
    if (auto key = pass_key(trace, pass)) groups[*std::move(key)].push_back(&pass);
  SameGradient found;
  for (const auto& [key, same] : groups) {
    // Each pass needs a root of its own: a second pass from the same root may compute another result.
    const bool has_roots = std::all_of(same.begin() + 1, same.end(), [&](const BackwardPass* pass) {
      return node_key(trace, pass->nodes[0]) != node_key(trace, same.front()->nodes[0]);
    });
    if (same.size() < 2 || !has_roots) continue;
    ++found.groups;
    found.passes += same.size();
    found.nodes = std::max(found.nodes, std::get<3>(key).size());
    for (std::size_t i = 1; i < same.size(); ++i)
      for (const SliceId node : same[i]->nodes) {
        found.again.insert(raw(node));
        if (found.longest == kNone<SliceId> || trace.dur_ns(node) > trace.dur_ns(found.longest))
          found.longest = node;
      }
  }
  if (found.again.empty()) return std::nullopt;
  found.cost_ns = cost_of_calls(facts, found.again);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastSameGradientShare)
    return std::nullopt;
  return found;
}

Finding tell_same_gradient(const Facts& facts, const SameGradient& found) {
  const Value times = found.passes % found.groups == 0
                          ? count(found.passes / found.groups)
                          : factor(static_cast<std::int64_t>(found.passes),
                                   static_cast<std::int64_t>(found.groups));
  Finding finding;
  finding.verdict = say(facts,
                        "The gradient of one result is computed {} times [per step], each time "
                        "through the same {} nodes: all but the first cost {} [per step] ({}).",
                        {times, count(found.nodes), ns(facts.per_step(found.cost_ns)),
                         ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.again.size(), finding);
  finding.arithmetic.push_back(
      say("the same: each pass begins with a sum or mean of all elements of one shape, and then "
          "runs the same nodes of autograd (name, sequence number, thread)"));
  finding.evidence.push_back(
      called_at(facts, found.longest, say("the longest node that ran again")));
  finding.try_next = {
      "call torch.autograd.grad once, keep its result, and take the columns that are needed from "
      "it",
      "for derivatives in a few directions: torch.func.jvp goes forward once for each, without a "
      "backward pass"};
  finding.explains.push_back({"repeated-backward", finding.at_stake_ns});
  finding.brief = say(facts, "The gradient of one result is computed {} times [per step]", {times});
  finding.action = say("Call autograd.grad once, keep the gradient, and take its columns");
  return finding;
}

}  // namespace

extern constinit const Rule same_gradient_rule = {
    .id = "same-gradient",
    .question = "is the same gradient computed several times?",
    .meant_by = "autograd.grad create_graph derivative pinn jacobian backward twice",
    .order = 444,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_same_gradient, tell_same_gradient>,
};

}  // namespace lanescope::explain::rules
