// A custom backward() of the program computes a matrix product that nothing reads, such as the gradient of a frozen weight.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/analysis/compiled_regions.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/operator_results.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;
using analysis::TensorArguments;

namespace {

constexpr double kLeastUnreadProductShare = 0.05;
constexpr std::size_t kMostInputs = 8;  // only the first inputs of a call are compared

// True: the program defines this node of autograd. The names of torch's own nodes end with a number. Nodes of compiled code are
// left out, because their operators are not all recorded.
bool is_own_node(std::string_view node) {
  const std::string_view name = without_evaluate(node);
  return name.ends_with("Backward") && !analysis::is_of_compiled_function(name);
}

// The outermost operators in the node's backward(). Nothing: backward() also launches work outside operators.
std::optional<std::vector<SliceId>> calls_of(const Facts& facts, SliceId node) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(node);
  SliceId own = kNone<SliceId>;  // "FrozenLinearBackward", inside "evaluate_function: ..."
  std::vector<SliceId> calls;
  for (std::uint32_t i = raw(node) + 1;
       i < track.first_slice + track.slice_count && trace.start_ns(SliceId{i}) < trace.end_ns(node);
       ++i) {
    const SliceId slice{i};
    if (own == kNone<SliceId> && trace.name(node).ends_with(trace.name(slice))) own = slice;
    const SliceId parent = facts.nesting.parent[i];
    if (own == kNone<SliceId> || parent != own) continue;
    if (is_api_call(trace.kind(slice))) return std::nullopt;
    if (trace.kind(slice) == CategoryKind::kCpuOp) calls.push_back(slice);
  }
  return calls;
}

struct MadeMatrix {
  Sizes size;
  const analysis::TypeRow* type = nullptr;
};

// The result of a product [m, k] x [k, n]; nothing: the operator is no such product.
std::optional<MadeMatrix> matrix_made_by(const Trace& trace, SliceId op) {
  if (trace.name(op) != "aten::mm" && trace.name(op) != "aten::matmul") return std::nullopt;
  const TensorArguments inputs = operator_inputs(trace, op);
  const auto a = inputs.tensor(0), b = inputs.tensor(1);
  if (!a || !b || a->rank() != 2 || b->rank() != 2) return std::nullopt;
  return MadeMatrix{{a->dims[0], b->dims[1]}, a->type};
}

bool is_of_size(const Sizes& dims, const Sizes& size) {
  return dims == size || (dims.size() == 2 && dims[0] == size[1] && dims[1] == size[0]);
}

bool takes(const Trace& trace, SliceId op, const MadeMatrix& matrix) {
  const TensorArguments inputs = operator_inputs(trace, op);
  for (std::size_t k = 0; k < kMostInputs; ++k)
    if (const auto tensor = inputs.tensor(k);
        tensor && tensor->type == matrix.type && is_of_size(tensor->dims, matrix.size))
      return true;
  return false;
}

// The size of the tensor that a product, a copy or an elementwise operator makes.
std::optional<Sizes> size_made_by(const Trace& trace, SliceId op) {
  if (auto product = matrix_made_by(trace, op)) return product->size;
  const std::string_view name = trace.name(op);
  if (name == "aten::to" || name == "aten::_to_copy" || name == "aten::clone") {
    const auto tensor = operator_inputs(trace, op).tensor(0);
    return tensor ? std::optional(tensor->dims) : std::nullopt;
  }
  if (result_kind(name) != ResultKind::kElementwise) return std::nullopt;
  const auto inputs = taken_tensors(trace, op);
  return inputs ? result_size(trace, op, ResultKind::kElementwise, *inputs) : std::nullopt;
}

bool is_taken_in(const Trace& trace, const std::vector<SliceId>& calls, std::size_t product,
                 const MadeMatrix& matrix) {
  for (std::size_t i = product + 1; i < calls.size(); ++i) {
    if (takes(trace, calls[i], matrix)) return true;
    // The calls after this one may read this newer tensor instead.
    if (const auto made = size_made_by(trace, calls[i]); made && is_of_size(*made, matrix.size))
      return false;
  }
  return false;
}

// The sizes of the tensors that a node of autograd takes, and of the tensors that its calls make.
struct NodeSizes {
  std::vector<Sizes> taken, made;
};

// True: the node only changes the shape of its input. A transposed matrix counts as the same size.
bool is_view_node(std::string_view node) {
  constexpr std::array<std::string_view, 5> kViews = {"TBackward0", "TransposeBackward0",
                                                      "ViewBackward0", "UnsafeViewBackward0",
                                                      "PermuteBackward0"};
  return std::any_of(kViews.begin(), kViews.end(),
                     [&](std::string_view view) { return node.ends_with(view); });
}

// The sizes of the nodes of one backward pass. Reads each node at most once.
class PassSizes {
 public:
  PassSizes(const Facts& facts, const BackwardPass& pass)
      : facts_(facts), pass_(pass), sizes_(pass.nodes.size()) {}

  // True: a later node (also AccumulateGrad) reads a tensor of this size, and no node in between made that tensor. If several
  // nodes make a tensor of this size, the newest tensor is assumed to be read first.
  bool is_taken_after(std::size_t node, const Sizes& size) {
    const auto count_in = [&](const std::vector<Sizes>& all) {
      return std::count_if(all.begin(), all.end(),
                           [&](const Sizes& each) { return is_of_size(each, size); });
    };
    std::ptrdiff_t made_later = 0;
    for (std::size_t n = node + 1; n < pass_.nodes.size(); ++n) {
      const NodeSizes& sizes = of(n);
      const std::ptrdiff_t taken = count_in(sizes.taken);
      if (taken > made_later) return true;
      made_later -= taken;
      made_later += is_view_node(facts_.trace->name(pass_.nodes[n])) ? taken : count_in(sizes.made);
    }
    return false;
  }

 private:
  const NodeSizes& of(std::size_t node) {
    if (!sizes_[node]) sizes_[node] = read(pass_.nodes[node]);
    return *sizes_[node];
  }

  // The first event inside a node has the node's inputs.
  NodeSizes read(SliceId node) const {
    const Trace& trace = *facts_.trace;
    NodeSizes sizes;
    if (raw(node) + 1 >= trace.slices().size()) return sizes;
    sizes.taken = input_shapes(trace, SliceId{raw(node) + 1});
    for (const SliceId call : calls_of(facts_, node).value_or(std::vector<SliceId>{}))
      if (auto made = size_made_by(trace, call)) sizes.made.push_back(*std::move(made));
    return sizes;
  }

  const Facts& facts_;
  const BackwardPass& pass_;
  std::vector<std::optional<NodeSizes>> sizes_;
};

struct UnreadProduct {
  std::unordered_set<std::uint32_t> products;
  std::map<std::string, Named> by_node;
  Sizes size;  // of the longest product
  SliceId longest = kNone<SliceId>;
  std::int64_t cost_ns = 0;
};

void find_in_node(const Facts& facts, const BackwardPass& pass, std::size_t node, PassSizes& sizes,
                  UnreadProduct& found) {
  const Trace& trace = *facts.trace;
  const auto calls = calls_of(facts, pass.nodes[node]);
  if (!calls) return;
  for (std::size_t i = 0; i < calls->size(); ++i) {
    const auto matrix = matrix_made_by(trace, (*calls)[i]);
    if (!matrix || is_taken_in(trace, *calls, i, *matrix) ||
        sizes.is_taken_after(node, matrix->size))
      continue;
    const SliceId product = (*calls)[i];
    found.products.insert(raw(product));
    found.by_node[std::string(without_evaluate(trace.name(pass.nodes[node])))].add(
        product, trace.dur_ns(product));
    if (found.longest != kNone<SliceId> && trace.dur_ns(product) <= trace.dur_ns(found.longest))
      continue;
    found.longest = product;
    found.size = matrix->size;
  }
}

std::optional<UnreadProduct> measure_unread_product(const Facts& facts) {
  UnreadProduct found;
  for (const BackwardPass& pass : backward_passes(facts)) {
    PassSizes sizes(facts, pass);
    for (std::size_t n = 0; n < pass.nodes.size(); ++n)
      if (is_own_node(facts.trace->name(pass.nodes[n]))) find_in_node(facts, pass, n, sizes, found);
  }
  if (found.products.size() < facts.selection.steady.size() || found.products.empty())
    return std::nullopt;
  found.cost_ns = cost_of_calls(facts, found.products);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastUnreadProductShare)
    return std::nullopt;
  return found;
}

Finding tell_unread_product(const Facts& facts, const UnreadProduct& found) {
  const auto most = std::max_element(
      found.by_node.begin(), found.by_node.end(),
      [](const auto& a, const auto& b) { return a.second.time_ns < b.second.time_ns; });
  const Value node = name(most->first), size = text(analysis::shape_text(found.size));
  const std::uint64_t products = found.products.size() / step_count(facts);
  Finding finding;
  finding.verdict = say(facts,
                        "{} computes {} [product|products] of {} [per step], and nothing uses "
                        "[it|them]: {} [per step] ({}).",
                        {node, count(products), size, ns(facts.per_step(found.cost_ns)),
                         ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.products.size(), finding);
  finding.arithmetic.push_back(
      say("nothing uses it: no later operator of that backward() takes a tensor of this size and "
          "type that was not made after the product, and no later node of the pass takes one of "
          "this size that no node in between made"));
  finding.evidence.push_back(called_at(facts, found.longest, say("the longest of these products")));
  finding.try_next = {
      "in backward() compute a gradient only if ctx.needs_input_grad says that it is needed, and "
      "return None for it otherwise",
      "if the program keeps the result for later, no change is needed"};
  finding.brief = say(facts, "{} computes {} [product|products] of {}, and nothing uses [it|them]",
                      {node, count(products), size});
  finding.action =
      say("If it is the gradient of a frozen weight: compute it only if ctx.needs_input_grad");
  return finding;
}

}  // namespace

extern constinit const Rule unread_product_rule = {
    .id = "unread-product",
    .question = "does a backward() of the program compute what nothing uses?",
    .meant_by = "custom autograd function frozen needs_input_grad backward unused gradient",
    .order = 449,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_unread_product, tell_unread_product>,
};

}  // namespace lanescope::explain::rules
