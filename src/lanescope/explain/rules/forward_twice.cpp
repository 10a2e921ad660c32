// A model that runs forward twice in one step: both times with a backward pass, or the second time
// without gradients.
//
// Problem: two forward passes look like twice as many layers. Idea: a weight has one gradient,
// however often it was used, so fewer accumulated gradients than layer calls of its shape mean that
// weights were used again. Recurrent layers do that, too, but there the second use takes the result
// of the first. So the first layer of both passes must take data: its backward part computes no
// gradient of its input. Example: linear a, b, c, a, b, c with three accumulated gradients, and one
// product in the backward part of each `a`. A pass without gradients shows only names and shapes.
// It must come after the other pass, because frozen layers come before trained ones. An optimizer's
// step between two passes changes the weights, so the rule looks at each part of a step alone.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

using analysis::Sizes;

constexpr double kLeastForwardTwiceShare = 0.05;
constexpr std::size_t kFewestLayers = 3;  // of one forward pass

bool is_layer(std::string_view op) {
  return op == "aten::linear" || op == "aten::conv1d" || op == "aten::conv2d" ||
         op == "aten::conv3d";
}

struct Layer {
  SliceId op{};
  const AutogradPair* pair = nullptr;
  Sizes weight;
  std::uint32_t name = 0, dims = 0;  // raw StringIds
  bool is_like(const Layer& other) const { return name == other.name && dims == other.dims; }
};

struct StepLayers {
  std::vector<Layer> layers;               // in order of time
  std::vector<Layer> without_gradients;    // in order of time, without pairs
  std::vector<const AutogradPair*> pairs;  // of all operators
  std::map<Sizes, std::uint64_t> accumulated;
};

struct ForwardTwice {
  std::size_t layers = 0;   // of one pass, in the first such step
  std::uint64_t times = 0;  // in all steps
  std::int64_t cost_ns = 0;
  std::uint64_t calls = 0;
  SliceId first{}, second{};  // the first layer of each pass
  bool has_gradients = true;  // the second pass
  bool has_dropout = false;   // each pass draws its own mask
};

struct Passes {
  SliceId first{}, second{}, last{};  // first layers of both passes, the last layer of the second
  std::size_t layers = 0;             // of one pass
};

class TwiceFinder {
 public:
  explicit TwiceFinder(const Facts& facts)
      : facts_(facts), trace_(*facts.trace), pairs_(autograd_pairs(facts)) {}

  std::optional<ForwardTwice> run() {
    gather();
    if (auto found = find(true)) return found;
    return recomputes_ ? std::nullopt : find(false);
  }

 private:
  // A steady step, and how many calls of an optimizer's step() began before.
  using StepPart = std::pair<std::size_t, std::size_t>;

  StepPart part_at(std::int64_t time_ns) const {
    const std::vector<std::int64_t>& updates_ns = optimizer_steps_ns(facts_);
    return {
        steady_step_at(facts_, time_ns),
        static_cast<std::size_t>(std::upper_bound(updates_ns.begin(), updates_ns.end(), time_ns) -
                                 updates_ns.begin())};
  }

  void gather() {
    for (const AutogradPair& pair : pairs_) {
      const StepPart step = part_at(trace_.start_ns(pair.forward));
      if (step.first == ~std::size_t{0}) continue;
      steps_[step].pairs.push_back(&pair);
      if (!is_layer(trace_.name(pair.forward))) continue;
      const auto weight = operator_inputs(trace_, pair.forward).tensor(1);
      const auto dims = trace_.slice_args(pair.forward).text(ArgKey::kInputDims);
      if (!weight || !dims) continue;
      steps_[step].layers.push_back({pair.forward, &pair, weight->dims,
                                     raw(trace_.slices().name[raw(pair.forward)]), raw(*dims)});
    }
    gather_without_gradients();
    for (auto& [index, step] : steps_)
      sort_rows(step.layers.begin(), step.layers.end(), [&](const Layer& a, const Layer& b) {
        return trace_.start_ns(a.op) < trace_.start_ns(b.op);
      });
    const auto is_looked_at = [](std::string_view name) {
      return is_layer(name) || name == "torch::autograd::AccumulateGrad";
    };
    for (const SliceId id : slices_named(facts_, is_looked_at)) {
      if (trace_.kind(id) != CategoryKind::kCpuOp) continue;
      if (is_layer(trace_.name(id))) recomputes_ = recomputes_ || is_in_backward(id);
      if (trace_.name(id) != "torch::autograd::AccumulateGrad") continue;
      const auto step = steps_.find(part_at(trace_.start_ns(id)));
      if (step == steps_.end()) continue;
      if (const auto gradient = operator_inputs(trace_, id).tensor(0))
        ++step->second.accumulated[gradient->dims];
    }
  }

  std::optional<ForwardTwice> find(bool has_gradients) {
    ForwardTwice found;
    found.has_gradients = has_gradients;
    std::unordered_set<std::uint32_t> again;
    std::unordered_set<std::size_t> such_steps;
    for (auto& [part, step] : steps_) {
      const auto passes = has_gradients ? halves_of(step) : pass_without_gradients(step);
      if (!passes) continue;
      such_steps.insert(part.first);
      if (found.times++ == 0) {
        found.layers = passes->layers;
        found.first = passes->first;
        found.second = passes->second;
        found.has_dropout = draws_masks(*passes);
      }
      if (has_gradients)
        add_pairs(step, *passes, again);
      else
        for (const Layer& layer : step.without_gradients) again.insert(raw(layer.op));
    }
    if (such_steps.size() * 2 <= facts_.selection.steady.size()) return std::nullopt;
    found.calls = again.size();
    found.cost_ns = cost_of_calls(facts_, again);
    if (share_of(found.cost_ns, facts_.steady_wall_ns()) < kLeastForwardTwiceShare)
      return std::nullopt;
    return found;
  }

  // All operators of the second pass, with their nodes.
  void add_pairs(const StepLayers& step, const Passes& passes,
                 std::unordered_set<std::uint32_t>& again) const {
    for (const AutogradPair* pair : step.pairs) {
      const std::int64_t time = trace_.start_ns(pair->forward);
      if (time < trace_.start_ns(passes.second) || time > trace_.start_ns(passes.last)) continue;
      again.insert(raw(pair->forward));
      for (const SliceId node : pair->nodes) again.insert(raw(node));
    }
  }

  // Layers that make no nodes, outside of the backward pass.
  void gather_without_gradients() {
    std::unordered_set<std::uint32_t> paired;
    for (const AutogradPair& pair : pairs_) paired.insert(raw(pair.forward));
    for (const CallSequence& sequence : call_sequences(facts_))
      for (const SliceId op : sequence) {
        if (!is_layer(trace_.name(op)) || paired.contains(raw(op))) continue;
        const auto dims = trace_.slice_args(op).text(ArgKey::kInputDims);
        const auto step = steps_.find(part_at(trace_.start_ns(op)));
        if (dims && step != steps_.end())
          step->second.without_gradients.push_back(
              {op, nullptr, {}, raw(trace_.slices().name[raw(op)]), raw(*dims)});
      }
  }

  // Both passes of the layers whose weights are used twice. Nothing: they do not form two equal passes.
  std::optional<Passes> halves_of(const StepLayers& step) const {
    std::map<Sizes, std::uint64_t> calls;
    for (const Layer& layer : step.layers) ++calls[layer.weight];
    std::vector<Layer> twice;
    for (const Layer& layer : step.layers)
      if (const auto gradients = step.accumulated.find(layer.weight);
          gradients != step.accumulated.end() && gradients->second * 2 == calls[layer.weight])
        twice.push_back(layer);
    const std::size_t half = twice.size() / 2;
    if (half < kFewestLayers || twice.size() % 2 != 0) return std::nullopt;
    for (std::size_t i = 0; i < half; ++i)
      if (!twice[i].is_like(twice[half + i])) return std::nullopt;
    if (!takes_data(*twice[0].pair) || !takes_data(*twice[half].pair) || takes_data(*twice[1].pair))
      return std::nullopt;
    return Passes{twice[0].op, twice[half].op, twice.back().op, half};
  }

  // A pass without gradients: its layers equal the layers with gradients, and come after them.
  std::optional<Passes> pass_without_gradients(const StepLayers& step) const {
    const auto &with = step.layers, &without = step.without_gradients;
    if (with.size() < kFewestLayers || with.size() != without.size() ||
        trace_.start_ns(without.front().op) < trace_.end_ns(with.back().op) ||
        !takes_data(*with.front().pair))
      return std::nullopt;
    for (std::size_t i = 0; i < with.size(); ++i)
      if (!with[i].is_like(without[i]) || is_other_module(with[i].op, without[i].op))
        return std::nullopt;
    return Passes{with.front().op, without.front().op, without.back().op, with.size()};
  }

  // Python frames name modules with numbers: a teacher, a target network or an average of the model has its own.
  bool is_other_module(SliceId a, SliceId b) const {
    const std::string_view of_a = module_around(trace_, a), of_b = module_around(trace_, b);
    return !of_a.empty() && !of_b.empty() && of_a != of_b;
  }

  // True: the layer's backward part computes the gradient of its weight, but none of its input. The
  // one product of a frozen layer is for its input. The inner size of the product shows which it is:
  // the input's rows (weight) or the layer's outputs (input).
  bool takes_data(const AutogradPair& pair) const {
    const auto inputs = operator_inputs(trace_, pair.forward);
    const auto input = inputs.tensor(0), weight = inputs.tensor(1);
    if (!input || !weight || input->dims.empty() || weight->dims.empty()) return false;
    const double rows =
        input->elements() / static_cast<double>(std::max<std::int64_t>(1, input->dim(0)));
    std::size_t products = 0;
    bool is_of_weight = false, is_convolution_of_data = false;
    for (const SliceId node : pair.nodes)
      for (std::uint32_t i = raw(node) + 1;
           i < trace_.slices().size() &&
           trace_.slices().track[i] == trace_.slices().track[raw(node)] &&
           trace_.start_ns(SliceId{i}) < trace_.end_ns(node);
           ++i) {
        const std::string_view op = trace_.name(SliceId{i});
        if (op == "aten::mm" || op == "aten::bmm") {
          ++products;
          const auto left = operator_inputs(trace_, SliceId{i}).tensor(0);
          is_of_weight = left && left->rank() > 0 && static_cast<double>(left->dim(0)) == rows &&
                         left->dim(0) != weight->dims[0];
        } else if (op == "aten::convolution_backward") {
          const auto wanted = operator_inputs(trace_, SliceId{i}).flags(10);  // input, weight, bias
          is_convolution_of_data = wanted.size() == 3 && !wanted[0] && wanted[1];
        }
      }
    return is_convolution_of_data || (products == 1 && is_of_weight);
  }

  // True: dropout runs between the first layers of both passes.
  bool draws_masks(const Passes& passes) const {
    for (std::uint32_t i = raw(passes.first); i < trace_.slices().size(); ++i) {
      const SliceId id{i};
      if (trace_.slices().track[i] != trace_.slices().track[raw(passes.first)] ||
          trace_.start_ns(id) >= trace_.start_ns(passes.second))
        return false;
      if (trace_.name(id) == "aten::native_dropout" || trace_.name(id) == "aten::bernoulli_")
        return true;
    }
    return false;
  }

  // Such as a checkpointed layer, which runs forward without gradients, and once more in the backward pass.
  bool is_in_backward(SliceId op) const {
    for (SliceId up = facts_.nesting.parent[raw(op)]; up != kNone<SliceId>;
         up = facts_.nesting.parent[raw(up)])
      if (trace_.name(up).starts_with(kEvaluateNode)) return true;
    return false;
  }

  const Facts& facts_;
  const Trace& trace_;
  const std::vector<AutogradPair>& pairs_;
  std::map<StepPart, StepLayers> steps_;
  bool recomputes_ = false;
};

std::optional<ForwardTwice> measure_forward_twice(const Facts& facts) {
  return TwiceFinder(facts).run();
}

// The second pass has no gradients.
void tell_without_gradients(const Facts& facts, const ForwardTwice& found, Finding& finding) {
  finding.verdict = say(
      facts,
      "{} layers run once more [per step], without gradients, after layers of the same names and "
      "shapes that the backward pass uses: {} [per step] ({}).",
      {count(found.layers), ns(facts.per_step(found.cost_ns)),
       ratio(found.cost_ns, facts.steady_wall_ns())});
  finding.arithmetic.push_back(
      say("counted: the layers without gradients alone, not the operators between them; the trace "
          "does not show whether weights and input are the same"));
  finding.try_next = {
      "if model and input are the same, use the first result again (detach() it); a teacher, a "
      "target network or another input needs its own pass"};
  finding.brief = say(facts, "{} layers run a second time [per step], without gradients",
                      {count(found.layers)});
  finding.action =
      say("If model and input are the same, use the first result (detach() it); a teacher or "
          "another input needs its own pass");
}

void tell_with_gradients(const Facts& facts, const ForwardTwice& found, Finding& finding) {
  finding.verdict =
      say(facts,
          "{} layers run forward twice [per step] with equal shapes and the same weights, and the "
          "backward pass goes through both: the second time takes {} [per step] ({}).",
          {count(found.layers), ns(facts.per_step(found.cost_ns)),
           ratio(found.cost_ns, facts.steady_wall_ns())});
  finding.arithmetic.push_back(
      say("counted: layers in two equal sequences that were called twice as often as gradients of "
          "their weights were accumulated; the first layer of both takes data, since no gradient "
          "of its input is computed"));
  finding.arithmetic.push_back(
      say("the trace does not show whether both inputs hold equal values"));
  if (found.has_dropout)
    finding.try_next = {
        "join both inputs into one batch and run the model once; dropout draws a mask for each "
        "row, so equal inputs still give different results"};
  else
    finding.try_next = {"if both take the same input, run the model once and use its result twice",
                        "if they take different inputs, join them into one batch and run it once"};
  const std::uint64_t times = a_step(facts, found.times);
  finding.brief = times > 1 ? say(facts,
                                  "The same {} layers run forward twice before each of {} updates "
                                  "[per step], each time with a backward pass",
                                  {count(found.layers), count(times)})
                            : say(facts,
                                  "The same {} layers run forward twice [per step], each time with "
                                  "a backward pass",
                                  {count(found.layers)});
  finding.action =
      found.has_dropout
          ? say("Join both inputs into one batch: dropout still draws a mask for each row")
          : say("Same input: use one result twice. Different inputs: join them into one batch");
}

Finding tell_forward_twice(const Facts& facts, const ForwardTwice& found) {
  Finding finding;
  rate_cost(facts, found.cost_ns, found.calls, finding);
  if (found.has_gradients)
    tell_with_gradients(facts, found, finding);
  else
    tell_without_gradients(facts, found, finding);
  for (const auto& [slice, what] : {std::pair(found.second, "the first layer of the second pass"),
                                    std::pair(found.first, "the first layer of the first pass")}) {
    finding.evidence.push_back(called_at(facts, slice, say(what)));
  }
  return finding;
}

}  // namespace

extern constinit const Rule forward_twice_rule = {
    .id = "forward-twice",
    .question = "does a model run forward twice in a step?",
    .meant_by = "forward twice repeated same again duplicate",
    .order = 437,
    .needs = {need::kAnyWork},
    .only_if = has_marked_steps<1>,
    .run = measure_and_tell<measure_forward_twice, tell_forward_twice>,
};

}  // namespace lanescope::explain::rules
