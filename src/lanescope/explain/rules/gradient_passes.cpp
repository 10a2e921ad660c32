#include "lanescope/explain/rules/gradient_passes.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/products.h"

namespace lanescope::explain::rules {
namespace {

constexpr std::string_view kAccumulate = "torch::autograd::AccumulateGrad";

std::int64_t sequence_of_op(const Trace& trace, SliceId op) {
  return trace.slice_args(op).integer(ArgKey::kSequenceNumber).value_or(-1);
}

GradientPasses make_gradient_passes(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::map<std::uint32_t, std::vector<std::int64_t>>
      calls_of;  // by thread: when the program's operators begin
  std::map<std::uint32_t, std::vector<SliceId>> nodes;  // by thread
  std::vector<std::int64_t> products;                   // of the program
  // autograd.grad() by an input that the program made runs a node AccumulateGrad that adds nothing: no operator is in it.
  std::unordered_set<std::uint32_t> nodes_that_add;
  bool has_inner_rows = false;  // a node's own row lies inside of "evaluate_function: NODE"
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || !inside(windows, trace.start_ns(id))) continue;
    const std::string_view label = trace.name(id);
    if (label.starts_with(kEvaluateNode)) {
      nodes[raw(trace.slices().track[i])].push_back(id);
      continue;
    }
    const SliceId node = ancestor_named(facts, id, kEvaluateNode);
    if (node != kNone<SliceId>) {
      if (label == kAccumulate) nodes_that_add.insert(raw(node));
      has_inner_rows = has_inner_rows || label == without_evaluate(trace.name(node));
      continue;
    }
    calls_of[raw(trace.slices().track[i])].push_back(trace.start_ns(id));
    if (is_product(label) || label.starts_with("aten::conv"))
      products.push_back(trace.start_ns(id));
  }
  std::sort(products.begin(), products.end());
  // Of the thread with most of them: others may work during a backward pass.
  std::vector<std::int64_t> calls;
  for (auto& [thread, own] : calls_of)
    if (own.size() > calls.size()) calls = std::move(own);
  GradientPasses found;
  std::set<std::pair<std::int64_t, std::uint32_t>> first_nodes;  // number and name
  for (const auto& [thread, all] : nodes) {
    std::int64_t last_pass_ns = std::numeric_limits<std::int64_t>::min();
    std::ptrdiff_t last = -1;  // calls before the node before
    bool adds = false, ends_at_parameter = false;
    std::vector<SliceId> pass;
    const auto count = [&] {
      if (last < 0) return;
      const SliceId first = pass.front();
      ++(adds ? found.adding : found.inner);
      if (!adds) found.inner_passes.push_back(pass);
      if (!adds && ends_at_parameter) ++found.returning;
      const std::int64_t start_ns = trace.start_ns(first);
      const auto product = std::upper_bound(products.begin(), products.end(), last_pass_ns);
      if (!adds && product != products.end() && *product < start_ns) ++found.of_new_forward;
      last_pass_ns = start_ns;
      const std::int64_t number = sequence_of_op(trace, first);
      if (!adds && number >= 0 &&
          !first_nodes.emplace(number, raw(trace.slices().name[raw(first)])).second)
        ++found.of_same_output;
    };
    // The engine begins with the newest node. After a node AccumulateGrad that added nothing, one as new as the first of the pass
    // begins another call of torch.autograd.grad().
    const auto begins_next_pass = [&](const std::vector<SliceId>& pass_before, SliceId node) {
      return has_inner_rows && !adds && !pass_before.empty() &&
             is_accumulating_node(trace.name(pass_before.back())) &&
             sequence_of_op(trace, pass_before.front()) >= 0 &&
             sequence_of_op(trace, node) >= sequence_of_op(trace, pass_before.front());
    };
    for (const SliceId node : all) {
      const std::ptrdiff_t before =
          std::upper_bound(calls.begin(), calls.end(), trace.start_ns(node)) - calls.begin();
      if (before != last || begins_next_pass(pass, node)) {
        count();
        adds = ends_at_parameter = false;
        pass.clear();
      }
      last = before;
      pass.push_back(node);
      const bool is_parameter = is_accumulating_node(trace.name(node));
      ends_at_parameter = ends_at_parameter || is_parameter;
      adds = adds || nodes_that_add.contains(raw(node)) || (!has_inner_rows && is_parameter);
    }
    count();
  }
  return found;
}

}  // namespace

NodesMadeIn::NodesMadeIn(const Facts& facts, const std::vector<SliceId>& runs) {
  const Trace& trace = *facts.trace;
  for (const SliceId run : runs) {
    const Track& track = trace.track(run);
    const std::int64_t own = sequence_of_op(trace, run);
    for (std::uint32_t i = raw(run) + 1; i < track.first_slice + track.slice_count &&
                                         trace.start_ns(SliceId{i}) < trace.end_ns(run);
         ++i)
      if (const std::int64_t number = sequence_of_op(trace, SliceId{i});
          number >= 0 && number != own)
        numbers_.insert(number);
  }
  for (const SliceId node : backward_nodes(facts))
    if (trace.name(node).find("BackwardBackward") != std::string_view::npos)
      threads_.insert(trace.slice_args(node).integer(ArgKey::kFwdThreadId).value_or(0));
}

bool NodesMadeIn::contains(const Trace& trace, SliceId run) const {
  return numbers_.contains(sequence_of_op(trace, run)) &&
         threads_.contains(trace.slice_args(run).integer(ArgKey::kFwdThreadId).value_or(0));
}

Sentence remedy_of_same_output() {
  return say("Take all gradients of an output in one call: torch.autograd.grad(u, (x, y, t), ...)");
}

const GradientPasses& count_gradient_passes(const Facts& facts) {
  return made_once<make_gradient_passes>(facts);
}

}  // namespace lanescope::explain::rules
