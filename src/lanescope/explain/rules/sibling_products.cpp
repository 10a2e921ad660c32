// Several products of one input that one wider product would do: q, k and v of attention, gates and values.
//
// Problem: a trace has no names of tensors, so a product that takes the result of the one before looks like one that takes
// the same input. Idea: the result does not fit the next product's input, or views have changed its shape before
// the next product. Example: linear, view, transpose, linear, view, transpose, linear: three products of one input.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::shape_text;
using analysis::Sizes;
using analysis::Window;

namespace {

constexpr double kLeastSiblingsShare = 0.05;
constexpr std::size_t kMostSiblings = 6;  // more are a loop

struct SiblingProduct {
  SliceId op{};
  Sizes left, weight;
  std::int64_t columns = 0;
};

std::optional<SiblingProduct> sibling_product_of(const Trace& trace, SliceId op) {
  const std::string_view label = trace.name(op);
  const bool is_linear = label == "aten::linear";
  const std::size_t first = label == "aten::addmm" ? 1 : 0;
  // The left matrix of matmul and mm may be the weight.
  if (!is_linear && first == 0) return std::nullopt;
  const auto inputs = operator_inputs(trace, op);
  const auto left = inputs.tensor(first), right = inputs.tensor(first + 1);
  if (!left || !right || left->rank() < 2 || right->rank() != 2) return std::nullopt;
  return SiblingProduct{op, left->dims, right->dims, right->dims[is_linear ? 0 : 1]};
}

// Products that follow each other with only views between them, over tensors of one shape.
struct Siblings {
  std::vector<SiblingProduct> products;
  std::uint64_t shown = 0;  // products that cannot take the result of the one before them
};

// The products after the first that one product would save.
struct SiblingProducts {
  std::uint64_t groups = 0, products = 0;
  std::vector<Window> windows;  // of the products after the first, with the views before them
  std::int64_t waiting_ns = 0;
  Siblings largest;
};

bool is_sibling_group(const Siblings& group) {
  return group.products.size() >= 2 && group.products.size() <= kMostSiblings &&
         group.shown + 1 >= group.products.size();
}

void close_sibling_group(const Trace& trace, Siblings& group, SiblingProducts& found) {
  if (is_sibling_group(group)) {
    ++found.groups;
    found.products += group.products.size();
    for (std::size_t i = 1; i < group.products.size(); ++i)
      found.windows.push_back(
          {trace.start_ns(group.products[i].op), trace.end_ns(group.products[i].op)});
    if (group.products.size() > found.largest.products.size()) found.largest = group;
  }
  group = {};
}

void find_sibling_groups(const Trace& trace, const CallSequence& sequence, SiblingProducts& found) {
  Siblings group;
  std::size_t views = 0;  // since the last product
  for (const SliceId op : sequence) {
    const std::string_view label = trace.name(op);
    if (is_view(label)) {
      ++views;
      continue;
    }
    auto product = sibling_product_of(trace, op);
    if (!product) {
      close_sibling_group(trace, group, found);
      continue;
    }
    if (!group.products.empty()) {
      const SiblingProduct& last = group.products.back();
      const bool fits = last.left == product->left && trace.name(last.op) == label;
      if (!fits)
        close_sibling_group(trace, group, found);
      else if (views > 0 || last.columns != last.left.back())
        ++group.shown;
    }
    views = 0;
    group.products.push_back(std::move(*product));
  }
  close_sibling_group(trace, group, found);
}

std::optional<SiblingProducts> measure_sibling_products(const Facts& facts) {
  SiblingProducts found;
  for (const CallSequence& sequence : call_sequences(facts))
    find_sibling_groups(*facts.trace, sequence, found);
  if (found.groups == 0) return std::nullopt;
  found.waiting_ns = lost_in(facts, steady_parts(facts, joined(found.windows))).waiting_for_cpu_ns;
  if (share_of(found.waiting_ns, facts.steady_wall_ns()) < kLeastSiblingsShare) return std::nullopt;
  return found;
}

Finding tell_sibling_products(const Facts& facts, const SiblingProducts& found) {
  const Trace& trace = *facts.trace;
  const std::uint64_t steps = step_count(facts);
  const SiblingProduct& first = found.largest.products.front();
  const std::uint64_t together = found.largest.products.size();
  Finding finding;
  finding.verdict =
      say(facts,
          "{} [time|times] [in {} steps], up to {} products follow each other over inputs of one "
          "shape, {}; after the first of each group the GPU waits {} [per step].",
          {count(found.groups), count(steps), count(together), text(shape_text(first.left)),
           ns(facts.per_step(found.waiting_ns))});
  rate_cost(facts, found.waiting_ns, found.products, finding);
  finding.waiting_ns = facts.per_step(found.waiting_ns);
  finding.arithmetic.push_back(
      say("counted: {} that follows another with only views between; its input has the same shape, "
          "but cannot be the other's result: its columns do not fit, or views changed it",
          {name(trace.name(first.op))}));
  Sentence line = say("the first of a group");
  add_line(facts, first.op, line);
  finding.evidence.push_back({first.op, std::move(line)});
  finding.try_next = {
      "one nn.Linear with the weights stacked, then chunk() or split(): q, k and v of attention, "
      "gates and values; a trained model can join its weights when it is loaded",
      "if the inputs are different tensors of one shape: torch.bmm over both"};
  finding.brief =
      say(facts, "{} x {} in a row take inputs of one shape, {}, {} [time|times] [per step]",
          {count(together), name(trace.name(first.op)), text(shape_text(first.left)),
           count(found.groups / steps)});
  finding.action = say("If the input is the same (q, k, v): one wider product, then chunk()");
  return finding;
}

}  // namespace

extern constinit const Rule sibling_products_rule = {
    .id = "sibling-products",
    .question = "would one wider product do what several do?",
    .meant_by = "qkv linear attention fuse projections",
    .order = 616,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .then_needs = {need::kShapes},
    .run = measure_and_tell<measure_sibling_products, tell_sibling_products>,
};

}  // namespace lanescope::explain::rules
