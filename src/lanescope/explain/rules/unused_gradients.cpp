// The backward pass makes gradients of parameters that no optimizer updates.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/base/json_value.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/names/collective_calls.h"

namespace lanescope::explain::rules {
namespace {

constexpr double kLeastUnusedGradientsShare = 0.05;
constexpr std::uint64_t kFewestUnused = 2;
constexpr char kOptimizer[] = "Optimizer.step#";

using GradientShape = std::vector<std::int64_t>;
using Shapes = std::map<GradientShape, std::uint64_t>;  // how often

std::optional<GradientShape> shape_of(const JsonValue& value) {
  if (!value.is_array()) return std::nullopt;
  GradientShape shape;
  for (const JsonValue& size : value.items) {
    if (!size.integer) return std::nullopt;
    shape.push_back(*size.integer);
  }
  return shape;
}

// Of the first input: one, or each of a list.
std::vector<GradientShape> first_input(const Trace& trace, SliceId op) {
  const auto dims = trace.slice_args(op).text(ArgKey::kInputDims);
  const auto inputs = dims ? parse_json(trace.text(*dims)) : std::nullopt;
  if (!inputs || !inputs->is_array() || inputs->items.empty()) return {};
  const JsonValue& first = inputs->items.front();
  if (const auto one = shape_of(first)) return {*one};
  std::vector<GradientShape> shapes;
  if (first.is_array())
    for (const JsonValue& each : first.items)
      if (auto shape = shape_of(each)) shapes.push_back(*std::move(shape));
  return shapes;
}

bool is_distributed(const Trace& trace) {
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const std::string_view label = trace.name(SliceId{i});
    if (names::is_collective_call(label) || label.starts_with("nccl")) return true;  // or a kernel
  }
  return false;
}

// One backward pass: its nodes in order, and the shape of each gradient that it made.
struct BackwardPass {
  std::vector<SliceId> nodes;
  std::vector<std::pair<std::size_t, GradientShape>> gradients;  // index of the node
};

struct StepUse {
  std::map<std::uint32_t, std::vector<BackwardPass>> passes;  // by thread
  std::map<std::string, Shapes> updates;                      // by operator of the optimizer
};

class Reader {
 public:
  explicit Reader(const Facts& facts) : facts_(facts), trace_(*facts.trace) {}

  std::map<std::size_t, StepUse> run() {
    for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) {  // in order of start
      const SliceId id{i};
      if (trace_.kind(id) != CategoryKind::kCpuOp) continue;
      const std::size_t step = steady_step_at(facts_, trace_.start_ns(id));
      if (step == ~std::size_t{0}) continue;
      if (trace_.name(id).starts_with(kEvaluateNode))
        add_node(steps_[step], id);
      else if (is_update(id))
        for (GradientShape& shape : first_input(trace_, id))
          ++steps_[step].updates[std::string(trace_.name(id))][std::move(shape)];
      else if (trace_.name(id) == "torch::autograd::AccumulateGrad")
        add_gradient(steps_[step], id);
    }
    return std::move(steps_);
  }

 private:
  bool is_update(SliceId op) const {
    const std::string_view label = trace_.name(op);
    if (!label.starts_with("aten::") || !label.ends_with("_")) return false;
    for (SliceId up = facts_.nesting.parent[raw(op)]; up != kNone<SliceId>;
         up = facts_.nesting.parent[raw(up)])
      if (trace_.name(up).starts_with(kOptimizer)) return true;
    return false;
  }

  // The engine runs the newest node that is ready, so numbers fall within a pass.
  void add_node(StepUse& step, SliceId node) {
    const std::uint32_t thread = raw(trace_.slices().track[raw(node)]);
    auto& passes = step.passes[thread];
    const std::int64_t number =
        trace_.slice_args(node).integer(ArgKey::kSequenceNumber).value_or(-1);
    const bool has_number =
        number >= 0 && trace_.name(node).find("AccumulateGrad") == std::string_view::npos;
    if (passes.empty() || (has_number && number > last_[thread])) passes.emplace_back();
    if (has_number) last_[thread] = number;
    passes.back().nodes.push_back(node);
  }

  void add_gradient(StepUse& step, SliceId op) {
    const auto found = step.passes.find(raw(trace_.slices().track[raw(op)]));
    const std::vector<GradientShape> shapes = first_input(trace_, op);
    if (found == step.passes.end() || found->second.empty() || shapes.size() != 1) return;
    BackwardPass& pass = found->second.back();
    pass.gradients.emplace_back(pass.nodes.size() - 1, shapes.front());
  }

  const Facts& facts_;
  const Trace& trace_;
  std::map<std::size_t, StepUse> steps_;
  std::map<std::uint32_t, std::int64_t> last_;  // by thread
};

struct UnusedGradients {
  std::uint64_t gradients = 0, updated = 0;  // of one step
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

std::optional<UnusedGradients> measure_unused_gradients(const Facts& facts) {
  if (is_distributed(*facts.trace)) return std::nullopt;  // each rank may update a part
  UnusedGradients found;
  std::unordered_set<std::uint32_t> nodes;
  const std::map<std::size_t, StepUse> steps = Reader(facts).run();
  for (const auto& [index, step] : steps) {
    const BackwardPass* largest = nullptr;
    for (const auto& [thread, passes] : step.passes)
      for (const BackwardPass& pass : passes)
        if (!largest || pass.gradients.size() > largest->gradients.size()) largest = &pass;
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
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastUnusedGradientsShare)
    return std::nullopt;
  return found;
}

Finding tell_unused_gradients(const Facts& facts, const UnusedGradients& found) {
  Finding finding;
  finding.verdict =
      say(facts,
          "The backward pass makes {} gradients [per step], and the optimizer updates {} "
          "parameters: up to {} [per step] ({}) may go.",
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
