// The backward pass makes gradients of parameters that no optimizer updates.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

constexpr double kLeastUnusedGradientsShare = 0.05;
constexpr std::uint64_t kFewestUnused = 2;
using analysis::Sizes;
using Shapes = std::map<Sizes, std::uint64_t>;  // how often

struct StepUse {
  const BackwardPass* largest = nullptr;  // the one with most gradients
  std::map<std::string, Shapes> updates;  // by operator of the optimizer
};

bool is_in_place(std::string_view op) { return op.starts_with("aten::") && op.ends_with("_"); }

std::map<std::size_t, StepUse> uses_by_step(const Facts& facts,
                                            const std::vector<BackwardPass>& passes) {
  const Trace& trace = *facts.trace;
  std::map<std::size_t, StepUse> steps;
  for (const BackwardPass& pass : passes) {
    const BackwardPass*& largest = steps[pass.step].largest;
    if (!largest || pass.gradients.size() > largest->gradients.size()) largest = &pass;
  }
  for (const SliceId id : slices_named(facts, is_in_place)) {
    if (trace.kind(id) != CategoryKind::kCpuOp || !is_in_optimizer_step(facts, id)) continue;
    const std::size_t step = steady_step_at(facts, trace.start_ns(id));
    if (step == ~std::size_t{0}) continue;
    for (Sizes& shape : first_input_shapes(trace, id))
      ++steps[step].updates[std::string(trace.name(id))][std::move(shape)];
  }
  return steps;
}

struct UnusedGradients {
  std::uint64_t gradients = 0, updated = 0;  // of one step
  bool is_never_cleared = false;             // known from what AccumulateGrad does, not from shapes
  bool is_in_front = false;                  // the same, but trained parameters come before them
  std::uint64_t nodes = 0;                   // after the last gradient that is used
  SliceId first = kNone<SliceId>;            // of them
  std::int64_t cost_ns = 0;
};

// The gradients that the optimizer may have used: by shape, the first ones of the pass.
std::vector<bool> used_gradients(const BackwardPass& pass, Shapes updates) {
  std::vector<bool> used;
  for (const auto& [node, shape] : pass.gradients) {
    const auto left = updates.find(shape);
    used.push_back(left != updates.end() && left->second > 0);
    if (used.back()) --left->second;
  }
  return used;
}

// True: each steady step has a step of an optimizer, and no zero_grad fills gradients with zeros.
bool clears_by_none(const Facts& facts) {
  if (clears_by_zeros(facts)) return false;
  std::set<std::size_t> steps;
  for (const std::int64_t time_ns : optimizer_steps_ns(facts))
    steps.insert(steady_step_at(facts, time_ns));
  steps.erase(~std::size_t{0});
  return steps.size() >= 2 && steps.size() == facts.selection.steady.size();
}

// The optimizer's zero_grad sets its gradients to None, so that the next pass makes new ones. Gradients that are added to
// in each step, which has one backward pass, belong to no optimizer. Needs no shapes.
std::optional<UnusedGradients> measure_never_cleared(const Facts& facts) {
  UnusedGradients found;
  found.is_never_cleared = true;
  std::unordered_set<std::uint32_t> nodes;
  std::set<std::size_t> steps;
  for (const BackwardPass& pass : backward_passes(facts)) {
    const Accumulated gradients = accumulated_in(facts, pass);
    if (gradients.all.empty()) continue;
    const std::uint64_t made = gradients.all.size(), added = gradients.added.size();
    if (!steps.insert(pass.step).second) return std::nullopt;  // passes whose gradients add up
    if (added < kFewestUnused || added == made) return std::nullopt;
    if (found.gradients != 0 && (found.gradients != made || found.updated != made - added))
      return std::nullopt;
    found.gradients = made;
    found.updated = made - added;
    std::size_t last = 0;  // the last gradient that is new
    for (const std::size_t n : gradients.all)
      if (!std::binary_search(gradients.added.begin(), gradients.added.end(), n)) last = n;
    for (std::size_t n = last + 1; n < pass.nodes.size(); ++n) {
      if (found.first == kNone<SliceId>) found.first = pass.nodes[n];
      nodes.insert(raw(pass.nodes[n]));
    }
  }
  if (nodes.empty() || steps.size() != facts.selection.steady.size() || !clears_by_none(facts))
    return std::nullopt;
  found.nodes = nodes.size();
  found.cost_ns = cost_of_calls(facts, nodes);
  return found;
}

// The kernels that make gradients of weights in these nodes, as cuDNN names them.
std::int64_t weight_gradients_ns(const Facts& facts,
                                 const std::unordered_set<std::uint32_t>& nodes) {
  std::vector<const analysis::DeviceWork*> works;
  for (const analysis::DeviceWork* work : steady_work(facts)) {
    if (facts.trace->name(work->slice).find("wgrad") == std::string_view::npos) continue;
    const SliceId node = ancestor_named(facts, facts.links.op_of[raw(work->slice)], kEvaluateNode);
    if (node != kNone<SliceId> && nodes.contains(raw(node))) works.push_back(work);
  }
  return union_ns(works);
}

// A zero_grad() of the one optimizer runs before each pass but the first.
bool are_cleared_between(const Facts& facts, const std::vector<BackwardPass>& passes) {
  const Trace& trace = *facts.trace;
  std::set<std::string_view> optimizers;
  for (const SliceId step : optimizer_steps(facts)) optimizers.insert(trace.name(step));
  if (optimizers.size() != 1) return false;
  std::vector<std::int64_t> clears_ns;
  for (const SliceId id : slices_starting_with(facts, "Optimizer.zero_grad#"))
    if (is_front_end(trace.kind(id))) clears_ns.push_back(trace.start_ns(id));
  std::sort(clears_ns.begin(), clears_ns.end());
  for (std::size_t i = 1; i < passes.size(); ++i) {
    const auto next = std::lower_bound(clears_ns.begin(), clears_ns.end(),
                                       trace.start_ns(passes[i - 1].nodes.back()));
    if (next == clears_ns.end() || *next > trace.start_ns(passes[i].nodes.front())) return false;
  }
  return true;
}

// As measure_never_cleared(), where a pass must go through the parameters that nothing clears: what is trained lies in front of them, such
// as a picture. The pass can go on without their gradients. All passes are alike; there may be several in a step (LBFGS).
std::optional<UnusedGradients> measure_cleared_in_front(const Facts& facts) {
  constexpr std::size_t kFewestPasses = 4;
  const Trace& trace = *facts.trace;
  const std::vector<BackwardPass>& passes = backward_passes(facts);
  if (!facts.main_device || passes.size() < kFewestPasses || clears_by_zeros(facts) ||
      !are_cleared_between(facts, passes))
    return std::nullopt;
  UnusedGradients found;
  found.is_never_cleared = found.is_in_front = true;
  std::unordered_set<std::uint32_t> nodes, makers;
  Accumulated first;
  for (const BackwardPass& pass : passes) {
    Accumulated gradients = accumulated_in(facts, pass);
    if (gradients.added.size() < kFewestUnused || gradients.added.size() == gradients.all.size())
      return std::nullopt;
    std::size_t at = 0, maker = 0;  // the last node before that accumulates nothing
    for (const std::size_t n : gradients.added) {
      if (found.first == kNone<SliceId>) found.first = pass.nodes[n];
      nodes.insert(raw(pass.nodes[n]));
      for (; at < n; ++at)
        if (!is_accumulating_node(trace.name(pass.nodes[at]))) maker = at;
      makers.insert(raw(pass.nodes[maker]));
    }
    if (first.all.empty())
      first = std::move(gradients);
    else if (first.all != gradients.all || first.added != gradients.added)
      return std::nullopt;
  }
  found.gradients = first.all.size();
  found.updated = first.all.size() - first.added.size();
  found.nodes = nodes.size();
  found.cost_ns = cost_of_calls(facts, nodes) + weight_gradients_ns(facts, makers);
  return found;
}

std::optional<UnusedGradients> measure_by_shapes(const Facts& facts) {
  UnusedGradients found;
  std::unordered_set<std::uint32_t> nodes;
  const std::vector<BackwardPass>& passes = backward_passes(facts);
  const std::map<std::size_t, StepUse> steps = uses_by_step(facts, passes);
  for (const auto& [index, step] : steps) {
    const BackwardPass* largest = step.largest;
    if (!largest || step.updates.empty()) continue;
    std::vector<bool> used;  // by the operator that updates most
    for (const auto& [op, shapes] : step.updates)
      if (auto by_this = used_gradients(*largest, shapes);
          used.empty() || std::count(by_this.begin(), by_this.end(), true) >
                              std::count(used.begin(), used.end(), true))
        used = std::move(by_this);
    const auto updated = static_cast<std::uint64_t>(std::count(used.begin(), used.end(), true));
    const std::uint64_t gradients = largest->gradients.size();
    if (updated == 0) continue;  // the optimizer's operators are not known
    if (gradients < updated + kFewestUnused) return std::nullopt;
    found.gradients = gradients;
    found.updated = updated;
    std::size_t last = 0;
    for (std::size_t i = 0; i < used.size(); ++i)
      if (used[i]) last = largest->gradients[i].first;
    for (std::size_t n = last + 1; n < largest->nodes.size(); ++n) {
      if (found.first == kNone<SliceId>) found.first = largest->nodes[n];
      nodes.insert(raw(largest->nodes[n]));
    }
  }
  if (nodes.empty()) return std::nullopt;
  found.nodes = nodes.size();
  found.cost_ns = cost_of_calls(facts, nodes);
  return found;
}

std::optional<UnusedGradients> measure_unused_gradients(const Facts& facts) {
  if (has_collectives(facts)) return std::nullopt;  // each rank may update a part
  auto found = measure_never_cleared(facts);
  if (!found) found = measure_cleared_in_front(facts);
  if (!found) found = measure_by_shapes(facts);
  if (!found || share_of(found->cost_ns, facts.steady_wall_ns()) < kLeastUnusedGradientsShare)
    return std::nullopt;
  return found;
}

// What the rule knows from AccumulateGrad, it says instead of what it knows from shapes.
void tell_never_cleared(const Facts& facts, const UnusedGradients& found, Finding& finding) {
  const std::uint64_t uncleared = found.gradients - found.updated;
  finding.verdict =
      say(facts,
          "{} of {} gradients are added to those of the steps before: no zero_grad() clears them, "
          "so no optimizer uses them. Up to {} [per step] ({}) may be saved.",
          {count(uncleared), count(found.gradients), ns(facts.per_step(found.cost_ns)),
           ratio(found.cost_ns, facts.steady_wall_ns())});
  finding.arithmetic = {
      say("gradients: AccumulateGrad in the one backward pass of a step; never cleared: it adds to "
          "a gradient that is there, in each step, while others are new in each step"),
      say("at stake: the nodes after the last gradient that is new")};
  finding.try_next = {
      "run a model that is not trained (a teacher, a frozen part) under torch.no_grad()",
      "or call requires_grad_(False) on its parameters, before the first step; eval() does not do "
      "that",
      "if they are to be trained, the optimizer lacks them: check what it was given"};
  finding.brief = say("{} of {} gradients are for parameters that no optimizer updates",
                      {count(uncleared), count(found.gradients)});
  finding.action =
      say("Run that model under torch.no_grad(), or freeze it with requires_grad_(False)");
  if (!found.is_in_front) return;
  finding.arithmetic = {
      say("gradients: AccumulateGrad in one backward pass; never cleared: each pass adds to a "
          "gradient that is there, although a zero_grad() runs before it and others are new"),
      say("at stake: these nodes, and the kernels that make gradients of weights for them (wgrad); "
          "the pass itself goes on through these parameters")};
  finding.try_next = {
      "call requires_grad_(False) on the parameters of a model that is not trained, before the "
      "first step: gradients still go through it",
      "if they are to be trained, the optimizer lacks them; if another optimizer adds up their "
      "gradients over many steps, all is right"};
  finding.action =
      say("If they are not trained: requires_grad_(False) on them; gradients still go through the "
          "model");
}

Finding tell_unused_gradients(const Facts& facts, const UnusedGradients& found) {
  Finding finding;
  finding.verdict =
      say(facts,
          "The backward pass makes {} gradients [per step], and the optimizer updates {} "
          "parameters: up to {} [per step] ({}) may be saved.",
          {count(found.gradients), count(found.updated), ns(facts.per_step(found.cost_ns)),
           ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.nodes, finding);
  finding.arithmetic.push_back(
      say("gradients: AccumulateGrad in one backward pass; updates: tensors of these shapes that "
          "one operator of Optimizer.step changes"));
  finding.arithmetic.push_back(
      say("at stake: the nodes after the last gradient that the optimizer may have used, if the "
          "parameters that it updates are the last of the model with their shapes"));
  finding.evidence.push_back({found.first, say("the first node after that")});
  finding.try_next = {
      "call requires_grad_(False) on parameters that are not trained, before the first step",
      "run a frozen part in front of the trained one under torch.no_grad(), or detach() its output",
      "if they are to be trained, the optimizer lacks them: check what it was given"};
  finding.brief = say("{} gradients are made, and the optimizer updates {} parameters",
                      {count(found.gradients), count(found.updated)});
  finding.action =
      say("Freeze the rest with requires_grad_(False), or run it under torch.no_grad()");
  if (found.is_never_cleared) tell_never_cleared(facts, found, finding);
  return finding;
}

}  // namespace

extern constinit const Rule unused_gradients_rule = {
    .id = "unused-gradients",
    .question = "are gradients computed for parameters that are not trained?",
    .meant_by = "frozen requires_grad backbone gradients",
    .order = 442,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_unused_gradients, tell_unused_gradients>,
};

}  // namespace lanescope::explain::rules
