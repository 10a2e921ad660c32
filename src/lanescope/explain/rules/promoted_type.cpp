// A small tensor of a wider type, such as a parameter in float32, makes a large result of that type out of half precision:
// torch promotes to the wider type. What follows then moves twice as many bytes.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::shape_text;
using analysis::Tensor;
using analysis::TensorArguments;

namespace {

constexpr double kLeastPromotedShare = 0.05;
constexpr double kLeastPromotedElements = 65'536;

bool may_promote(std::string_view op) {
  static constexpr std::array<std::string_view, 8> kOperators = {
      "aten::add",     "aten::sub",     "aten::mul", "aten::div",
      "aten::maximum", "aten::minimum", "aten::pow", "aten::where"};
  return std::find(kOperators.begin(), kOperators.end(), op) != kOperators.end();
}

struct Promotion {
  Tensor large, small;
};

// A large tensor of a narrow type and a smaller one of a wide type. Tensors without dimensions do not promote.
std::optional<Promotion> promotion_of(std::string_view op, const TensorArguments& inputs) {
  if (!may_promote(op)) return std::nullopt;
  const std::size_t first = op == "aten::where" ? 1 : 0;
  auto a = inputs.tensor(first), b = inputs.tensor(first + 1);
  if (!a || !b || a->rank() == 0 || b->rank() == 0) return std::nullopt;
  if (a->elements() < b->elements()) std::swap(a, b);
  if (!a->type->is_floating || !b->type->is_floating || a->elements() < kLeastPromotedElements ||
      b->elements() * 16 > a->elements() || a->type->size_bytes >= b->type->size_bytes)
    return std::nullopt;
  return Promotion{*a, *b};
}

bool takes_type(const TensorArguments& inputs, const analysis::TypeRow* type,
                double least_elements) {
  for (std::size_t i = 0; i < 3; ++i)
    if (const auto tensor = inputs.tensor(i); tensor && tensor->elements() >= least_elements)
      return tensor->type == type;
  return false;
}

struct PromotedType {
  std::unordered_set<std::uint32_t> calls;
  std::uint64_t promotions = 0;
  std::int64_t all_ns = 0;
  SliceId largest = kNone<SliceId>;
  std::optional<Promotion> types;
  std::int64_t saved_ns() const {
    return all_ns - all_ns * types->large.type->size_bytes / types->small.type->size_bytes;
  }
};

// The promoting calls and, until one takes the narrow type again, the calls that take the wide one.
void find_promoted(const Trace& trace, const CallSequence& sequence, PromotedType& found) {
  const analysis::TypeRow* wide = nullptr;
  double elements = 0;
  for (const SliceId op : sequence) {
    const std::string_view label = trace.name(op);
    const TensorArguments inputs = operator_inputs(trace, op);
    if (auto promotion = promotion_of(label, inputs)) {
      wide = promotion->small.type;
      elements = promotion->large.elements();
      ++found.promotions;
      found.calls.insert(raw(op));
      if (!found.types || elements > found.types->large.elements()) {
        found.types = std::move(promotion);
        found.largest = op;
      }
      continue;
    }
    if (!wide || is_view(label)) continue;
    if (takes_type(inputs, wide, elements))
      found.calls.insert(raw(op));
    else
      wide = nullptr;
  }
}

std::optional<PromotedType> measure_promoted_type(const Facts& facts) {
  PromotedType found;
  for (const CallSequence& sequence : call_sequences(facts))
    find_promoted(*facts.trace, sequence, found);
  if (found.calls.empty()) return std::nullopt;
  found.all_ns = cost_of_calls(facts, found.calls);
  if (share_of(found.saved_ns(), facts.steady_wall_ns()) < kLeastPromotedShare) return std::nullopt;
  return found;
}

Finding tell_promoted_type(const Facts& facts, const PromotedType& found) {
  const std::string_view op = facts.trace->name(found.largest);
  const auto& [large, small] = *found.types;
  const std::uint64_t steps = step_count(facts);
  Finding finding;
  finding.verdict =
      say(facts,
          "{} of {} {} and {} {} gives {}: such calls promote {} [time|times] [per step], and with "
          "the calls that take their results they cost {} [per step].",
          {name(op), text(std::string(large.type->name)), text(shape_text(large.dims)),
           text(std::string(small.type->name)), text(shape_text(small.dims)),
           text(std::string(small.type->name)), count(found.promotions / steps),
           ns(facts.per_step(found.all_ns))});
  rate_cost(facts, found.saved_ns(), found.calls.size(), finding);
  finding.arithmetic.push_back(say(
      facts,
      "{} [per step] for {} bytes an element; with {} bytes it would be {} less, where memory "
      "limits these calls",
      {ns(facts.per_step(found.all_ns)), count(static_cast<std::uint64_t>(small.type->size_bytes)),
       count(static_cast<std::uint64_t>(large.type->size_bytes)),
       ns(facts.per_step(found.saved_ns()))}));
  Sentence line = say("the largest of them");
  add_line(facts, found.largest, line);
  finding.evidence.push_back({found.largest, std::move(line)});
  finding.try_next = {
      "keep the small tensor in the type of the large one: module.to(dtype), or "
      "parameter.to(dtype) once, outside of the step; masters of parameters belong into the "
      "optimizer or autocast"};
  for (const char* covered : {"hotspot-kernel", "memory-roof", "no-roof", "dtype-casts"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say("{} of {} {} and {} {} makes the large one {}",
                      {name(op), text(std::string(large.type->name)), text(shape_text(large.dims)),
                       text(std::string(small.type->name)), text(shape_text(small.dims)),
                       text(std::string(small.type->name))});
  finding.action = say("Make the small tensor {}, so that results stay in that type",
                       {text(std::string(large.type->name))});
  return finding;
}

}  // namespace

extern constinit const Rule promoted_type_rule = {
    .id = "promoted-type",
    .question = "does a small tensor of a wider type widen large ones?",
    .meant_by = "dtype promotion float32 bfloat16 upcast parameter",
    .order = 494,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .then_needs = {need::kShapes},
    .run = measure_and_tell<measure_promoted_type, tell_promoted_type>,
};

}  // namespace lanescope::explain::rules
