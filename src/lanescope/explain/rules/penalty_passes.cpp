#include "lanescope/explain/rules/penalty_passes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/gradient_passes.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {
namespace {

// A node that a pass goes over: number, thread that made it, raw name.
using PassedNode = std::tuple<std::int64_t, std::int64_t, std::uint32_t>;

PassedNode passed_node(const Trace& trace, SliceId run) {
  const ArgsView args = trace.slice_args(run);
  return {args.integer(ArgKey::kSequenceNumber).value_or(-1),
          args.integer(ArgKey::kFwdThreadId).value_or(0), raw(trace.slices().name[raw(run)])};
}

bool is_numbered(const PassedNode& node) { return std::get<0>(node) >= 0; }

bool is_second_derivative(std::string_view label) {
  return label.find("BackwardBackward") != std::string_view::npos;
}

// The program's own nodes of the steady steps: not those that another node's hook or recomputation runs.
std::vector<SliceId> outer_nodes(const Facts& facts) {
  std::vector<SliceId> nodes;
  for (const SliceId node : backward_nodes(facts))
    if (steady_step_at(facts, facts.trace->start_ns(node)) != ~std::size_t{0} &&
        ancestor_named(facts, facts.nesting.parent[raw(node)], kEvaluateNode) == kNone<SliceId>)
      nodes.push_back(node);
  return nodes;
}

// Does each steady step have an optimizer's step after second derivatives, and one after a backward pass without them? Of all
// optimizers' steps at least a quarter: a penalty that is taken less often needs no advice.
bool is_taken_by_one_of_two(const Facts& facts, const std::vector<SliceId>& nodes) {
  constexpr std::size_t kLeastShare = 4;
  const std::vector<std::int64_t>& stepped_ns = optimizer_steps_ns(facts);
  std::map<std::size_t, bool>
      turns;  // by the optimizer's step that follows: with second derivatives
  for (const SliceId node : nodes) {
    const auto next =
        std::lower_bound(stepped_ns.begin(), stepped_ns.end(), facts.trace->start_ns(node));
    if (next == stepped_ns.end()) continue;
    bool& is_twice = turns[static_cast<std::size_t>(next - stepped_ns.begin())];
    is_twice = is_twice || is_second_derivative(facts.trace->name(node));
  }
  std::set<std::size_t> with, without;  // steady steps
  std::size_t taken = 0;
  for (const auto& [turn, is_twice] : turns) {
    (is_twice ? with : without).insert(steady_step_at(facts, stepped_ns[turn]));
    taken += is_twice ? 1 : 0;
  }
  return with == without && !with.contains(~std::size_t{0}) && with.size() == step_count(facts) &&
         taken * kLeastShare >= turns.size();
}

// Is the pass's output used for it alone? Then nothing goes back over the first node after the sum or mean again.
bool is_of_own_output(const Trace& trace, const std::vector<SliceId>& pass,
                      const std::map<PassedNode, std::size_t>& runs) {
  for (const SliceId run : pass) {
    const std::string_view name = without_evaluate(trace.name(run));
    if (name.starts_with("SumBackward") || name.starts_with("MeanBackward")) continue;
    const PassedNode node = passed_node(trace, run);
    const auto all = runs.find(node);
    return is_numbered(node) && all != runs.end() && all->second == 1;
  }
  return false;
}

}  // namespace

std::vector<SliceId> runs_of_gradient_penalty(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const std::vector<SliceId> nodes = outer_nodes(facts);
  const GradientPasses& passes = count_gradient_passes(facts);
  if (passes.inner_passes.empty() || !is_taken_by_one_of_two(facts, nodes)) return {};
  std::map<PassedNode, std::size_t> runs;
  for (const SliceId node : nodes) ++runs[passed_node(trace, node)];
  std::map<PassedNode, bool> of_passes;  // must the next run stay?
  std::vector<SliceId> all;
  for (const std::vector<SliceId>& pass : passes.inner_passes) {
    all.insert(all.end(), pass.begin(), pass.end());
    const bool stays = !is_of_own_output(trace, pass, runs);
    for (const SliceId run : pass)
      if (const PassedNode node = passed_node(trace, run); is_numbered(node))
        of_passes.emplace(node, stays);
  }
  const NodesMadeIn made(facts, all);
  std::vector<SliceId> spared;
  for (const SliceId run : nodes) {
    const PassedNode node = passed_node(trace, run);
    if (!is_numbered(node)) continue;
    const auto passed = of_passes.find(node);
    if (passed != of_passes.end()) {
      if (!passed->second) spared.push_back(run);
      passed->second = false;
    } else if (is_second_derivative(trace.name(run)) || made.contains(trace, run)) {
      spared.push_back(run);
    }
  }
  std::sort(spared.begin(), spared.end());
  return spared;
}

}  // namespace lanescope::explain::rules
