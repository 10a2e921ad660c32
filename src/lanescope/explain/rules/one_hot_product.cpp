// Products with a one-hot matrix: all but one element of each row are zeros.
//
// Idea: aten::one_hot of indices [n] with c classes makes a matrix [n, c]; later products of the
// program in the same step that take a matrix of that shape, or of its transposed shape, multiply
// with it. Example: one_hot of [4096] with 32,000 classes, to(float), then mm([4096, 32000],
// [32000, 512]).
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/products.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

using analysis::Tensor;

constexpr double kLeastOneHotProductShare = 0.03;
// A product over few classes is fast on a GPU.
constexpr std::int64_t kFewestClasses = 65, kFewestRows = 2;

struct Matrix {
  std::int64_t rows = 0, classes = 0;
  SliceId made_by{};
};

struct OneHotProduct {
  Matrix matrix;  // of the product with most time
  SliceId longest = kNone<SliceId>;
  std::uint64_t products = 0;
  std::int64_t cost_ns = 0;  // of the products and of making the matrices
  std::uint64_t calls = 0;
  bool sums_by_class = false;  // the longest product takes the transposed matrix first
};

// The matrix that a call of aten::one_hot makes. Where the number of classes is not an argument, it is
// the size of the zeros inside.
std::optional<Matrix> matrix_of(const Trace& trace, SliceId op) {
  const auto inputs = operator_inputs(trace, op);
  const auto index = inputs.tensor(0);
  constexpr double kMostRows = 1e15;  // more is damage
  if (!index || index->elements() > kMostRows) return std::nullopt;
  Matrix matrix{static_cast<std::int64_t>(index->elements()), 0, op};
  if (const auto classes = inputs.value(1); classes && classes->integer && *classes->integer > 0)
    matrix.classes = *classes->integer;
  for (std::uint32_t i = raw(op) + 1; matrix.classes == 0 && i < trace.slices().size() &&
                                      trace.slices().track[i] == trace.slices().track[raw(op)] &&
                                      trace.start_ns(SliceId{i}) < trace.end_ns(op);
       ++i)
    if (trace.name(SliceId{i}).starts_with("aten::scatter_"))
      if (const auto into = operator_inputs(trace, SliceId{i}).tensor(0); into && into->rank() > 0)
        matrix.classes = into->dims.back();
  if (matrix.rows < kFewestRows || matrix.classes < kFewestClasses) return std::nullopt;
  return matrix;
}

bool is_matrix(const Tensor& tensor, const Matrix& matrix) {
  if (tensor.rank() < 2 ||
      tensor.elements() != static_cast<double>(matrix.rows) * static_cast<double>(matrix.classes))
    return false;
  return tensor.dim(0) == matrix.classes ||
         (tensor.rank() == 2 && tensor.dim(1) == matrix.classes && tensor.dim(0) == matrix.rows);
}

class ProductFinder {
 public:
  explicit ProductFinder(const Facts& facts) : facts_(facts), trace_(*facts.trace) {}

  std::optional<OneHotProduct> run() {
    find_matrices();
    if (matrices_.empty()) return std::nullopt;
    for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) visit(SliceId{i});
    if (found_.products == 0) return std::nullopt;
    add_nodes();
    calls_.insert(used_.begin(), used_.end());
    found_.calls = calls_.size();
    found_.cost_ns = cost_of_calls(facts_, calls_);
    if (share_of(found_.cost_ns, facts_.steady_wall_ns()) < kLeastOneHotProductShare)
      return std::nullopt;
    return found_;
  }

 private:
  void find_matrices() {
    for (const CallSequence& sequence : call_sequences(facts_))
      for (const SliceId op : sequence)
        if (trace_.name(op) == "aten::one_hot")
          if (const auto matrix = matrix_of(trace_, op))
            matrices_[steady_step_at(facts_, trace_.start_ns(op))].push_back(*matrix);
  }

  SliceId outermost(SliceId op) const {
    for (SliceId up = facts_.nesting.parent[raw(op)]; up != kNone<SliceId>;
         up = facts_.nesting.parent[raw(up)])
      if (trace_.kind(up) == CategoryKind::kCpuOp && !trace_.name(up).starts_with("ProfilerStep"))
        op = up;
    return op;
  }

  // Only products that the program calls: in the backward pass, gradients of logits have the same
  // shape as a one-hot matrix of the labels.
  void visit(SliceId op) {
    if (trace_.kind(op) != CategoryKind::kCpuOp || !is_product(trace_.name(op))) return;
    const auto step = matrices_.find(steady_step_at(facts_, trace_.start_ns(op)));
    if (step == matrices_.end()) return;
    const SliceId call = outermost(op);
    if (calls_.contains(raw(call)) || trace_.name(call).starts_with(kEvaluateNode)) return;
    const auto inputs = operator_inputs(trace_, op);
    for (std::size_t slot = 0; slot < 3; ++slot) {
      const auto tensor = inputs.tensor(slot);
      // The weight of a linear layer has no rows of this step.
      if (!tensor || (trace_.name(op) == "aten::linear" && slot > 0)) continue;
      for (const Matrix& matrix : step->second) {
        if (!is_matrix(*tensor, matrix) || trace_.start_ns(op) < trace_.end_ns(matrix.made_by))
          continue;
        used_.insert(raw(matrix.made_by));
        calls_.insert(raw(call));
        ++found_.products;
        if (found_.longest == kNone<SliceId> ||
            trace_.dur_ns(call) > trace_.dur_ns(found_.longest)) {
          found_.longest = call;
          found_.matrix = matrix;
          found_.sums_by_class = slot == 0 && tensor->rank() == 2 &&
                                 tensor->dims[0] == matrix.classes &&
                                 tensor->dims[1] == matrix.rows;
        }
        return;
      }
    }
  }

  // What the products cost in the backward pass.
  void add_nodes() {
    for (const AutogradPair& pair : autograd_pairs(facts_))
      if (calls_.contains(raw(pair.forward)))
        for (const SliceId node : pair.nodes) calls_.insert(raw(node));
  }

  const Facts& facts_;
  const Trace& trace_;
  std::map<std::size_t, std::vector<Matrix>> matrices_;  // by steady step
  std::unordered_set<std::uint32_t> calls_, used_;
  OneHotProduct found_;
};

std::optional<OneHotProduct> measure_one_hot_product(const Facts& facts) {
  return ProductFinder(facts).run();
}

Finding tell_one_hot_product(const Facts& facts, const OneHotProduct& found) {
  const auto rows = static_cast<std::uint64_t>(found.matrix.rows);
  const auto classes = static_cast<std::uint64_t>(found.matrix.classes);
  const std::uint64_t steps = step_count(facts);
  Finding finding;
  finding.verdict =
      say(facts,
          "{} [product|products] [per step] [takes|take] a matrix of the shape that {} made, {} x "
          "{}, in which one element of a row is 1 and all others are 0: {} [per step] ({}).",
          {count(std::max<std::uint64_t>(1, found.products / steps)), name("aten::one_hot"),
           count(rows), count(classes), ns(facts.per_step(found.cost_ns)),
           ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls, finding);
  finding.arithmetic.push_back(say(
      "counted: products of the program that begin after aten::one_hot in the same step and take a "
      "matrix of its shape, or of the transposed shape, their nodes of the backward pass, and "
      "aten::one_hot itself"));
  // The line of the matrix comes first, because the program must change there.
  finding.evidence.push_back(called_at(facts, found.matrix.made_by, say("the matrix")));
  finding.evidence.push_back(called_at(facts, found.longest, say("the longest of these products")));
  finding.try_next = {
      "to take rows of a table, use F.embedding(index, table) or table[index]: they read one row "
      "for each index",
      "to add up rows by class, use index_add_ or scatter_add_"};
  for (const char* covered : {"hotspot-kernel", "fp32-matmul", "slow-gemm", "no-roof",
                              "memory-roof", "inflated-tensor", "operator-copies"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say("A product takes a one-hot matrix, {} x {}: almost all of it are zeros",
                      {count(rows), count(classes)});
  finding.action =
      found.sums_by_class
          ? say("Add up rows by class: zeros(classes, width).index_add_(0, index, x); count with "
                "bincount")
          : say("Take the rows themselves: F.embedding(index, table) or table[index]");
  return finding;
}

}  // namespace

extern constinit const Rule one_hot_product_rule = {
    .id = "one-hot-product",
    .question = "does a product take a one-hot matrix?",
    .meant_by = "one_hot onehot embedding index zeros",
    .order = 499,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_one_hot_product, tell_one_hot_product>,
};

}  // namespace lanescope::explain::rules
