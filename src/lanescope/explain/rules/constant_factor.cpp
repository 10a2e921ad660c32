// Data is multiplied by a large matrix that nothing makes, changes or trains. Such a matrix is often a triangle of ones (running
// totals), a band, a transform or a permutation: other operators do the same with far less work.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;
using analysis::Tensor;

namespace {

constexpr double kLeastConstantFactorShare = 0.1;
constexpr std::int64_t kLeastSquare = 512;

bool is_square(const Tensor& tensor) {
  return tensor.rank() == 2 && tensor.dims[0] == tensor.dims[1] && tensor.dims[0] >= kLeastSquare;
}

// The sizes of the factor that is square, if only one is. The weight of a layer goes through aten::linear instead.
std::optional<Sizes> square_factor(const Trace& trace, SliceId op) {
  if (trace.name(op) != "aten::matmul" && trace.name(op) != "aten::mm") return std::nullopt;
  const auto inputs = operator_inputs(trace, op);
  const auto a = inputs.tensor(0), b = inputs.tensor(1);
  if (!a || !b || a->dims == b->dims || is_square(*a) == is_square(*b)) return std::nullopt;
  return is_square(*a) ? a->dims : b->dims;
}

struct ConstantFactor {
  Sizes matrix;
  std::vector<SliceId> products;
  std::int64_t cost_ns = 0;
};

// Products with a square matrix, by its sizes, without sizes that any other operator takes or makes.
class MatrixUses {
 public:
  explicit MatrixUses(const Facts& facts) : trace_(*facts.trace) {
    for (const CallSequence& calls : call_sequences(facts))
      for (const SliceId call : calls)
        if (auto matrix = square_factor(trace_, call)) products_[*matrix].push_back(call);
    for (std::uint32_t i = 0; i < trace_.slices().size() && !products_.empty(); ++i)
      if (trace_.kind(SliceId{i}) == CategoryKind::kCpuOp) drop_sizes_of(SliceId{i});
  }
  const std::map<Sizes, std::vector<SliceId>>& products() const { return products_; }

 private:
  static bool is_product_part(std::string_view op) {
    return op == "aten::matmul" || op == "aten::mm" || op == "aten::t" ||
           op == "aten::resolve_conj";
  }
  // If something made, trained or changed such a matrix, another call would take it.
  void drop_sizes_of(SliceId op) {
    if (is_product_part(trace_.name(op)) && !trace_.name(op).starts_with(kEvaluateNode)) return;
    for (const Sizes& each : input_shapes(trace_, op)) products_.erase(each);
    for (const Sizes& each : first_input_shapes(trace_, op)) products_.erase(each);
    if (const auto made = operator_inputs(trace_, op).list(0, 2)) products_.erase(*made);
  }

  const Trace& trace_;
  std::map<Sizes, std::vector<SliceId>> products_;
};

std::optional<ConstantFactor> measure_constant_factor(const Facts& facts) {
  const std::vector<BackwardPass>& passes = backward_passes(facts);
  // Without training, each weight is a matrix that does not change.
  if (passes.empty()) return std::nullopt;
  const MatrixUses uses(facts);
  if (uses.products().empty()) return std::nullopt;
  std::unordered_set<std::uint32_t> with_gradient;  // products, and those inside of them
  for (const AutogradPair& pair : autograd_pairs(facts))
    for (SliceId up = pair.forward; up != kNone<SliceId>; up = facts.nesting.parent[raw(up)])
      with_gradient.insert(raw(up));
  if (with_gradient.empty()) return std::nullopt;
  ConstantFactor found;
  for (const auto& [matrix, products] : uses.products()) {
    const bool learns = std::any_of(products.begin(), products.end(), [&](SliceId product) {
      return with_gradient.contains(raw(product));
    });
    if (learns || products.size() < facts.selection.steady.size()) continue;
    std::unordered_set<std::uint32_t> calls;
    for (const SliceId product : products) calls.insert(raw(product));
    const std::int64_t cost_ns = cost_of_calls(facts, calls);
    if (cost_ns > found.cost_ns) found = {matrix, products, cost_ns};
  }
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastConstantFactorShare)
    return std::nullopt;
  return found;
}

Finding tell_constant_factor(const Facts& facts, const ConstantFactor& found) {
  const Value product = name(facts.trace->name(found.products.front())),
              matrix = text(analysis::shape_text(found.matrix));
  Finding finding;
  finding.verdict = say(
      facts,
      "{} multiplies by a matrix of {} that nothing in the recording makes, learns or changes: {} "
      "[per step] ({}). If it has a simple form, such as a triangle of ones, another operator does "
      "the same with far less work.",
      {product, matrix, ns(facts.per_step(found.cost_ns)),
       ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.products.size(), finding);
  finding.arithmetic.push_back(
      say("counted: aten::matmul of data and a square matrix, without a node of autograd, in steps "
          "that train; no other operator takes or makes a tensor of that size. The replacement "
          "takes some of this time itself; the trace does not show what the matrix holds"));
  finding.evidence.push_back(called_at(facts, found.products.front(), say("the product")));
  finding.try_next = {
      "a triangle of ones adds up: x.cumsum(-1). A band averages neighbours: conv1d or avg_pool1d. "
      "Sines and cosines: torch.fft. One 1 in each row: x[..., index]. A diagonal: x * d",
      "if it is none of these and the data stays the same: multiply once, before the loop. A dense "
      "matrix of arbitrary numbers needs no change"};
  for (const char* covered : {"hotspot-kernel", "fp32-matmul", "slow-gemm", "same-flops"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say("{} multiplies by a fixed matrix of {}, which nothing changes or learns",
                      {product, matrix});
  finding.action =
      say("If it is a triangle of ones: x.cumsum(-1); a band: conv1d; one 1 in each row: an index");
  return finding;
}

}  // namespace

extern constinit const Rule constant_factor_rule = {
    .id = "constant-factor",
    .question = "is data multiplied by a large matrix that never changes?",
    .meant_by = "cumsum running total triangle tril constant matrix matmul band permutation dft",
    .order = 455,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_constant_factor, tell_constant_factor>,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
