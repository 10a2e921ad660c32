// A backward() of the program multiplies zeros: nothing used an output, so it has no gradient, and autograd makes one of zeros.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lanescope/analysis/compiled_regions.h"
#include "lanescope/base/json_value.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/products.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;

namespace {

constexpr double kLeastMaterializedShare = 0.05;

// What a node of autograd takes: gradients with a size, and outputs that have none.
struct TakenGradients {
  std::vector<Sizes> sizes;
  std::size_t missing = 0;
};
TakenGradients gradients_taken(const Trace& trace, SliceId node) {
  TakenGradients taken;
  const ArgsView args = trace.slice_args(node);
  const auto dims = args.text(ArgKey::kInputDims), types = args.text(ArgKey::kInputType);
  const auto sizes = dims ? parse_json(trace.text(*dims)) : std::nullopt;
  const auto names = types ? parse_json(trace.text(*types)) : std::nullopt;
  if (!sizes || !names || sizes->items.size() != names->items.size()) return taken;
  for (std::size_t k = 0; k < names->items.size(); ++k) {
    if (names->items[k].text.empty()) {
      ++taken.missing;
    } else if (auto size = analysis::sizes_of(sizes->items[k])) {
      taken.sizes.push_back(*std::move(size));
    }
  }
  return taken;
}

// The node itself inside of "evaluate_function: ..."; none: torch's own, which end with a number.
SliceId own_node_in(const Trace& trace, SliceId evaluated) {
  const std::string_view name = without_evaluate(trace.name(evaluated));
  if (!name.ends_with("Backward") || analysis::is_of_compiled_function(name)) return kNone<SliceId>;
  const Track& track = trace.track(evaluated);
  for (std::uint32_t i = raw(evaluated) + 1; i < track.first_slice + track.slice_count &&
                                             trace.start_ns(SliceId{i}) < trace.end_ns(evaluated);
       ++i)
    if (trace.name(SliceId{i}) == name) return SliceId{i};
  return kNone<SliceId>;
}

// Operators that the node calls, not those inside of them.
std::vector<SliceId> operators_in(const Facts& facts, SliceId node) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(node);
  std::vector<SliceId> calls;
  for (std::uint32_t i = raw(node) + 1;
       i < track.first_slice + track.slice_count && trace.start_ns(SliceId{i}) < trace.end_ns(node);
       ++i)
    if (facts.nesting.parent[i] == node && trace.kind(SliceId{i}) == CategoryKind::kCpuOp)
      calls.push_back(SliceId{i});
  return calls;
}

struct MaterializedGradients {
  std::string node;
  Sizes size;  // of the first
  std::size_t outputs = 0, missing = 0;
  std::uint64_t nodes = 0, products = 0;
  SliceId first = kNone<SliceId>;  // a product of zeros
  std::unordered_set<std::uint32_t> zeros, of_zeros;
  std::int64_t cost_ns = 0;
};

bool takes_zeros(const Trace& trace, SliceId op, const std::vector<Sizes>& zeros) {
  const Sizes flipped = {zeros[0].rbegin(), zeros[0].rend()};
  const auto shapes = input_shapes(trace, op);
  return std::any_of(shapes.begin(), shapes.end(), [&](const Sizes& each) {
    return (each.size() == 2 && each == flipped) ||
           std::find(zeros.begin(), zeros.end(), each) != zeros.end();
  });
}

void find_in_own_node(const Facts& facts, SliceId evaluated, MaterializedGradients& found,
                      double& share) {
  const Trace& trace = *facts.trace;
  const SliceId node = own_node_in(trace, evaluated);
  if (node == kNone<SliceId>) return;
  const TakenGradients taken = gradients_taken(trace, node);
  if (taken.missing == 0 || taken.sizes.empty()) return;
  // autograd makes zeros before backward() begins: these are the node's first operators.
  const std::vector<SliceId> calls = operators_in(facts, node);
  std::vector<Sizes> zeros;
  std::size_t at = 0;
  for (; at < calls.size() && zeros.size() < taken.missing; ++at) {
    const auto size = trace.name(calls[at]) == "aten::zeros"
                          ? operator_inputs(trace, calls[at]).value(0)
                          : std::nullopt;
    auto sizes = size ? analysis::sizes_of(*size) : std::nullopt;
    if (!sizes || sizes->empty()) return;
    zeros.push_back(*std::move(sizes));
  }
  if (zeros.size() < taken.missing) return;
  // Gradients of one size look alike in a trace, so each counts for an equal part of their products.
  const auto alike = static_cast<double>(std::count_if(
      taken.sizes.begin(), taken.sizes.end(), [&](const Sizes& each) { return each == zeros[0]; }));
  const double missing = static_cast<double>(zeros.size());
  std::vector<SliceId> products;
  for (; at < calls.size(); ++at)
    if (is_product(trace.name(calls[at])) && takes_zeros(trace, calls[at], zeros))
      products.push_back(calls[at]);
  const double of_zeros = static_cast<double>(products.size()) * missing / (missing + alike);
  if (of_zeros < 1) return;
  if (found.nodes++ == 0) {
    found.node = trace.name(node);
    found.size = zeros[0];
    found.outputs = taken.sizes.size() + taken.missing;
    found.missing = taken.missing;
    found.first = products.front();
    share = missing / (missing + alike);
  }
  found.products += static_cast<std::uint64_t>(of_zeros + 0.5);
  for (std::size_t i = 0; i < taken.missing; ++i) found.zeros.insert(raw(calls[i]));
  for (const SliceId product : products) found.of_zeros.insert(raw(product));
}

std::optional<MaterializedGradients> measure_materialized_gradients(const Facts& facts) {
  MaterializedGradients found;
  double share = 0;
  for (const BackwardPass& pass : backward_passes(facts))
    for (const SliceId node : pass.nodes) find_in_own_node(facts, node, found, share);
  if (found.nodes == 0 || found.nodes < facts.selection.steady.size()) return std::nullopt;
  found.cost_ns =
      cost_of_calls(facts, found.zeros) +
      static_cast<std::int64_t>(share * static_cast<double>(cost_of_calls(facts, found.of_zeros)));
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastMaterializedShare)
    return std::nullopt;
  return found;
}

Finding tell_materialized_gradients(const Facts& facts, const MaterializedGradients& found) {
  const Value node = name(found.node), missing = count(found.missing),
              outputs = count(found.outputs), products = count(found.products / step_count(facts)),
              size = text(analysis::shape_text(found.size));
  Finding finding;
  finding.verdict = say(
      facts,
      "{} gets no gradient for {} of its {} outputs, so autograd makes zeros of {} instead, and "
      "backward() multiplies them: {} [product|products] and the fills take {} [per step] ({}).",
      {node, missing, outputs, size, products, ns(facts.per_step(found.cost_ns)),
       ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.nodes, finding);
  finding.sample_noun = "node";
  finding.arithmetic.push_back(say(
      "counted: nodes of torch.autograd.Function that take an undefined gradient and begin with "
      "aten::zeros; the zeros, and the products in the node that take a tensor of their size. "
      "Gradients of one size look alike: each counts for an equal part of their products"));
  finding.evidence.push_back(called_at(facts, found.first, say("the first of these products")));
  finding.try_next = {
      "in forward(): ctx.set_materialize_grads(False). In backward() a missing gradient then is "
      "None: leave out what belongs to it, and return None where nothing is left",
      "or do not compute the output that nothing uses"};
  for (const char* covered : {"hotspot-kernel", "slow-backward", "unread-product"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say(facts, "{} multiplies zeros: it gets no gradient for {} of its {} outputs",
                      {node, missing, outputs});
  finding.action =
      say("In forward(): ctx.set_materialize_grads(False); in backward() skip what is None");
  return finding;
}

}  // namespace

extern constinit const Rule materialized_gradients_rule = {
    .id = "materialized-gradients",
    .question = "does a backward() of the program multiply gradients of zeros?",
    .meant_by = "zeros unused output set_materialize_grads undefined gradient",
    .order = 454,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_materialized_gradients, tell_materialized_gradients>,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
