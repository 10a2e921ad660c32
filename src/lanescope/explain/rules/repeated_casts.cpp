// Weights that are cast to another type at each use, though one cast would do.
//
// Problem: no single cast shows that the same weight was cast before. Idea: a weight can be
// recognised by its slot: input 1 of a linear layer or a convolution. In a program that trains, as
// many weights of a shape exist as gradients of that shape are accumulated in a backward pass.
// Example: 12 casts of [1024, 1024] and 1 accumulated gradient: 11 casts are repeated. Without a
// backward pass weights do not change, so all casts repeat those of the step before.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/layer_casts.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

using analysis::shape_text;
using analysis::Sizes;
using analysis::Tensor;

constexpr double kLeastRepeatedCastsShare = 0.03;
constexpr std::size_t kMostRemembered = 3;  // casts before the layer that takes them

// Layers by slots: input, weight, bias.
bool has_weight_slots(std::string_view op) {
  static constexpr std::array<std::string_view, 5> kLayers = {
      "aten::linear", "aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution"};
  return std::find(kLayers.begin(), kLayers.end(), op) != kLayers.end();
}

struct WeightCast {
  SliceId op{};
  Sizes dims;
  std::string_view from, to;
};

// Casts of one shape and the weights of it.
struct CastShape {
  std::vector<WeightCast> casts;
  std::uint64_t nodes = 0;        // casts that a backward pass goes through
  std::uint64_t accumulated = 0;  // gradients of this shape
  // Frozen weights have casts, too, but no nodes and no gradients.
  bool is_repeated() const { return accumulated > 0 && nodes >= 2 * accumulated; }
};

struct RepeatedCasts {
  std::uint64_t casts = 0, weights = 0;  // of the largest shape, in all steady steps
  bool has_backward = false;
  bool is_autocast = false;  // the largest
  std::int64_t cost_ns = 0;
  std::uint64_t calls = 0;
  std::vector<SliceId> spared;
  WeightCast largest;
  std::optional<LayerCasts> in_layers;  // known from rounds, without shapes
};

class CastFinder {
 public:
  explicit CastFinder(const Facts& facts) : facts_(facts), trace_(*facts.trace) {}

  std::optional<RepeatedCasts> run() {
    for (const CallSequence& sequence : call_sequences(facts_)) {
      recent_.clear();
      for (const SliceId op : sequence) visit(op);
    }
    count_gradients();
    return sum();
  }

 private:
  // The cast that a call makes right inside, of floating-point types.
  std::optional<WeightCast> cast_of(SliceId op) const {
    if (trace_.name(op) != "aten::to") return std::nullopt;
    for (std::uint32_t i = raw(op) + 1; is_inside(i, op); ++i) {
      if (trace_.name(SliceId{i}) != "aten::copy_") continue;
      const auto inputs = operator_inputs(trace_, SliceId{i});
      const auto to = inputs.tensor(0), from = inputs.tensor(1);
      if (!to || !from || to->dims != from->dims || to->type == from->type ||
          !to->type->is_floating || !from->type->is_floating ||
          to->type->size_bytes >= from->type->size_bytes)
        return std::nullopt;
      return WeightCast{op, to->dims, from->type->torch, to->type->torch};
    }
    return std::nullopt;
  }

  bool is_inside(std::uint32_t index, SliceId op) const {
    return index < trace_.slices().size() &&
           trace_.slices().track[index] == trace_.slices().track[raw(op)] &&
           trace_.start_ns(SliceId{index}) < trace_.end_ns(op);
  }

  void visit(SliceId op) {
    const std::string_view label = trace_.name(op);
    if (label.starts_with(kEvaluateNode)) {
      has_backward_ = true;
      return;
    }
    if (label == "aten::to") {
      if (auto cast = cast_of(op)) recent_.push_back(std::move(*cast));
      if (recent_.size() > kMostRemembered) recent_.erase(recent_.begin());
      return;
    }
    if (!has_weight_slots(label)) return;
    const auto inputs = operator_inputs(trace_, op);
    const auto first = inputs.tensor(0);
    if (!first) return;
    // autocast casts inside the layer; the program itself casts before it.
    std::vector<WeightCast> inside;
    for (std::uint32_t i = raw(op) + 1; is_inside(i, op); ++i)
      if (auto cast = cast_of(SliceId{i})) inside.push_back(std::move(*cast));
    for (const std::size_t slot : {std::size_t{1}, std::size_t{2}}) {
      const auto weight = inputs.tensor(slot);
      // If it has the shape of the input, it may be a cast of the input.
      if (!weight || weight->dims == first->dims) continue;
      take(*weight, inside, true);
      take(*weight, recent_, false);
    }
    recent_.clear();
  }

  void take(const Tensor& weight, const std::vector<WeightCast>& casts, bool is_autocast) {
    for (const WeightCast& cast : casts) {
      const std::string_view type = is_autocast ? cast.from : cast.to;
      if (cast.dims != weight.dims || type != weight.type->torch ||
          !taken_.insert(raw(cast.op)).second)
        continue;
      shapes_[cast.dims].casts.push_back(cast);
      if (is_autocast) autocasts_.insert(raw(cast.op));
    }
  }

  void count_gradients() {
    const auto is_looked_at = [](std::string_view name) {
      return name == "torch::autograd::AccumulateGrad" || name == "ToCopyBackward0";
    };
    for (const SliceId id : slices_named(facts_, is_looked_at)) {
      const bool is_gradient = trace_.name(id) == "torch::autograd::AccumulateGrad";
      if (trace_.kind(id) != CategoryKind::kCpuOp ||
          steady_step_at(facts_, trace_.start_ns(id)) == ~std::size_t{0})
        continue;
      const auto gradient = operator_inputs(trace_, id).tensor(0);
      if (!gradient) continue;
      const auto shape = shapes_.find(gradient->dims);
      if (shape != shapes_.end()) ++(is_gradient ? shape->second.accumulated : shape->second.nodes);
    }
  }

  std::optional<RepeatedCasts> sum() const {
    RepeatedCasts found;
    found.has_backward = has_backward_;
    std::int64_t largest_ns = -1;
    for (const auto& [dims, shape] : shapes_) {
      if (has_backward_ && !shape.is_repeated()) continue;
      std::unordered_set<std::uint32_t> calls;
      for (const WeightCast& cast : shape.casts) calls.insert(raw(cast.op));
      const std::uint64_t all = shape.casts.size();
      const std::uint64_t repeated =
          has_backward_ ? std::min(all, shape.nodes) - std::min(all, shape.accumulated) : all;
      const std::int64_t cost_ns = static_cast<std::int64_t>(
          static_cast<double>(cost_of_calls(facts_, calls)) * static_cast<double>(repeated) /
          static_cast<double>(shape.casts.size()));
      found.cost_ns += cost_ns;
      found.calls += shape.casts.size();
      // As many as need not run, spread evenly.
      for (std::uint64_t i = 0; i < all; ++i)
        if ((i + 1) * repeated / all > i * repeated / all)
          found.spared.push_back(shape.casts[i].op);
      if (cost_ns <= largest_ns) continue;
      largest_ns = cost_ns;
      found.casts = shape.casts.size();
      found.weights = shape.accumulated;
      found.largest = shape.casts.front();
      found.is_autocast = autocasts_.contains(raw(found.largest.op));
    }
    if (found.calls == 0 ||
        share_of(found.cost_ns, facts_.steady_wall_ns()) < kLeastRepeatedCastsShare)
      return std::nullopt;
    return found;
  }

  const Facts& facts_;
  const Trace& trace_;
  std::vector<WeightCast> recent_;  // by the program, before a layer
  std::map<Sizes, CastShape> shapes_;
  std::unordered_set<std::uint32_t> taken_, autocasts_;
  bool has_backward_ = false;
};

bool has_layer_shapes(const Facts& facts) {
  for (const CallSequence& sequence : call_sequences(facts))
    for (const SliceId op : sequence)
      if (has_weight_slots(facts.trace->name(op)))
        return operator_inputs(*facts.trace, op).tensor(0).has_value();
  return false;
}

std::optional<RepeatedCasts> measure_repeated_casts(const Facts& facts) {
  // Without marked steps, a recording may be one step that uses each weight once.
  const bool has_steps = facts.steps.marked && facts.selection.steady.size() >= 2;
  if (has_steps && has_layer_shapes(facts)) return CastFinder(facts).run();
  auto casts = find_layer_casts(facts);
  if (!casts) return std::nullopt;
  RepeatedCasts found;
  found.cost_ns = cost_of_spared(facts, casts->calls);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastRepeatedCastsShare)
    return std::nullopt;
  found.in_layers = std::move(casts);
  return found;
}

Finding tell_casts_in_layers(const Facts& facts, const RepeatedCasts& found) {
  const LayerCasts& casts = *found.in_layers;
  const std::string to(casts.to);
  Finding finding;
  finding.verdict =
      say(facts,
          std::string(casts.are_steps
                          ? "Layers cast their weights to {} in each of {} steps, {} casts a "
                            "step"
                          : "Layers cast their weights to {} again in each of {} rounds, {} "
                            "casts a round") +
              ", and no backward pass changes them: {} [per step] ({}).",
          {text(to), count(casts.rounds), count(casts.casts), ns(facts.per_step(found.cost_ns)),
           ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, casts.calls.size(), finding);
  finding.spared_calls = casts.calls;
  finding.arithmetic.push_back(
      say("counted: casts right inside a linear layer or a convolution (autocast), as far as their "
          "order shows that they are of the weight or the bias; a round begins with a lookup of "
          "indices"));
  Sentence line = say("the first of these casts");
  add_line(facts, casts.calls.front(), line);
  finding.evidence.push_back({casts.calls.front(), std::move(line)});
  finding.try_next = {
      "keep the weights in that type: model.to(torch." + to + ")",
      "or enter autocast once around all rounds: its cache keeps the casts of weights that require "
      "gradients until that block ends"};
  for (const char* covered : {"unfused-chain", "back-and-forth", "tiny-kernels", "remade-weight"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say("Weights are cast to {} in each {}: {} casts",
                      {text(to), text(casts.are_steps ? "step" : "round"), count(casts.casts)});
  finding.action =
      say("Keep them so: model.to(torch.{}), or one autocast around all rounds", {text(to)});
  return finding;
}

std::string type_text(std::string_view type) {
  const analysis::TypeRow* row = analysis::find_type(type);
  const std::string_view name = row ? row->name : type;
  return name == "f32"    ? "float32"
         : name == "bf16" ? "bfloat16"
         : name == "f16"  ? "float16"
         : name == "f64"  ? "float64"
                          : std::string(name);
}

Finding tell_repeated_casts(const Facts& facts, const RepeatedCasts& found) {
  if (found.in_layers) return tell_casts_in_layers(facts, found);
  const std::uint64_t steps = facts.selection.steady.size();
  const auto a_step = [&](std::uint64_t total) {
    return count(std::max<std::uint64_t>(1, (total + steps / 2) / steps));
  };
  const std::string from = type_text(found.largest.from), to = type_text(found.largest.to);
  Finding finding;
  finding.verdict =
      found.has_backward
          ? say(facts,
                "Weights of shape {} are cast from {} to {} {} times [per step], and only {} "
                "[weight has|weights have] that shape: the repeated casts take {} [per step] ({}).",
                {text(shape_text(found.largest.dims)), text(from), text(to), a_step(found.casts),
                 a_step(found.weights), ns(facts.per_step(found.cost_ns)),
                 ratio(found.cost_ns, facts.steady_wall_ns())})
          : say(facts,
                "Weights are cast from {} to {} in each step, {} of shape {}, and no backward pass "
                "changes them: {} [per step] ({}).",
                {text(from), text(to), a_step(found.casts), text(shape_text(found.largest.dims)),
                 ns(facts.per_step(found.cost_ns)), ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls, finding);
  finding.spared_calls = found.spared;
  finding.arithmetic.push_back(
      say(facts, "of shape {}: {} [cast|casts] [in {} steps], {} accumulated [gradient|gradients]",
          {text(shape_text(found.largest.dims)), count(found.casts), count(steps),
           count(found.weights)}));
  finding.arithmetic.push_back(say(
      "counted: casts to a smaller type of what takes the place of a weight or a bias in a linear "
      "layer or a convolution; with a backward pass, those beyond the number of gradients of that "
      "shape that it accumulates"));
  Sentence line = say("the first of these casts");
  add_line(facts, found.largest.op, line);
  finding.evidence.push_back({found.largest.op, std::move(line)});
  if (!found.has_backward)
    finding.try_next = {"cast the weights once, before the loop: model.to(torch." + to + ")"};
  else if (found.is_autocast)
    finding.try_next = {
        "enter autocast once around all uses of the weight, with its cache on "
        "(cache_enabled=True)"};
  else
    finding.try_next = {
        "cast the weight once per step, before its first use, and use the result again"};
  for (const char* covered : {"unfused-chain", "back-and-forth", "tiny-kernels", "remade-weight"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      found.has_backward
          ? say(facts,
                "The same weights are cast to {} again: {} casts of {} [per step], {} "
                "[weight|weights]",
                {text(to), a_step(found.casts), text(shape_text(found.largest.dims)),
                 a_step(found.weights)})
          : say(facts, "Weights are cast to {} in each step: {} [cast|casts] of {} [per step]",
                {text(to), a_step(found.casts), text(shape_text(found.largest.dims))});
  finding.action = !found.has_backward ? say("Cast them once: model.to(torch.{})", {text(to)})
                   : found.is_autocast
                       ? say("Enter autocast once around all uses, with its cache on")
                       : say("Cast each weight once per step and use the result again");
  return finding;
}

}  // namespace

extern constinit const Rule repeated_casts_rule = {
    .id = "repeated-casts",
    .question = "are the same weights cast again and again?",
    .meant_by = "cast weights autocast cache dtype repeated same again",
    .order = 436,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_repeated_casts, tell_repeated_casts>,
};

}  // namespace lanescope::explain::rules
