// Products of a long matrix with its own transpose, made on the long side: X Xᵀ and products of it, although Xᵀ X on the short
// side leads to the same result. Newton and Schulz's iteration, as Muon uses it, is of this form.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;
using analysis::Tensor;
using analysis::TensorArguments;

namespace {

constexpr double kLeastLongSideShare = 0.05;
constexpr std::int64_t kLeastRatioOfSides = 2;
constexpr std::size_t kMostCallsOfPolynomial = 24;

bool is_plain_product(std::string_view op) {
  return op == "aten::matmul" || op == "aten::mm" || op == "aten::bmm";
}

std::int64_t rows_of(const Sizes& dims) { return dims[dims.size() - 2]; }

bool are_sides(const Sizes& dims, std::int64_t rows, std::int64_t columns) {
  return dims.size() >= 2 && rows_of(dims) == rows && dims.back() == columns;
}

// The same memory, read the other way: the steps between rows and between columns have changed places.
bool may_be_transposes(const Tensor& a, const Tensor& b) {
  if (a.rank() != b.rank() || a.rank() < 2 || a.type != b.type || !a.strides || !b.strides ||
      rows_of(a.dims) != b.dims.back() || a.dims.back() != rows_of(b.dims) ||
      !std::equal(a.dims.begin(), a.dims.end() - 2, b.dims.begin()))
    return false;
  return rows_of(*a.strides) == b.strides->back() && a.strides->back() == rows_of(*b.strides) &&
         rows_of(*a.strides) != a.strides->back();
}

struct LongPolynomial {
  std::vector<SliceId> calls;  // on tensors of the long side squared
  std::int64_t rows = 0, columns = 0;
  double on_long_side = 0, on_short_side = 0;  // multiplications
};

// X Xᵀ at `at`, then only sums and multiples of it and its own powers, and last a product with a matrix of X's shape.
std::optional<LongPolynomial> polynomial_at(const Trace& trace, const CallSequence& calls,
                                            std::size_t at) {
  if (!is_plain_product(trace.name(calls[at]))) return std::nullopt;
  const TensorArguments first = operator_inputs(trace, calls[at]);
  const auto a = first.tensor(0), b = first.tensor(1);
  if (!a || !b || a->rank() < 2) return std::nullopt;
  LongPolynomial found;
  const std::int64_t m = found.rows = rows_of(a->dims), k = found.columns = a->dims.back();
  if (k <= 0 || m / k < kLeastRatioOfSides || !may_be_transposes(*a, *b)) return std::nullopt;
  const double rows = static_cast<double>(m), columns = static_cast<double>(k);
  const auto add = [&](SliceId call, double on_long, double on_short) {
    found.calls.push_back(call);
    found.on_long_side += on_long;
    found.on_short_side += on_short;
  };
  add(calls[at], rows * rows * columns, rows * columns * columns);
  bool has_power = false;
  for (std::size_t i = at + 1; i < calls.size() && i <= at + kMostCallsOfPolynomial; ++i) {
    const std::string_view op = trace.name(calls[i]);
    const TensorArguments inputs = operator_inputs(trace, calls[i]);
    const auto left = inputs.tensor(0), right = inputs.tensor(1);
    const bool has_square =
        (left && are_sides(left->dims, m, m)) || (right && are_sides(right->dims, m, m));
    if (!has_square) continue;  // of X alone
    if (is_plain_product(op) && left && right && are_sides(left->dims, m, m)) {
      if (are_sides(right->dims, m, m)) {
        add(calls[i], rows * rows * rows, columns * columns * columns);
        has_power = true;
      } else if (are_sides(right->dims, m, k)) {
        add(calls[i], rows * rows * columns, rows * columns * columns);
        return has_power ? std::optional(std::move(found)) : std::nullopt;
      } else {
        return std::nullopt;
      }
      continue;
    }
    // A multiple by a number, or a sum of two of them.
    const bool is_linear =
        op == "aten::add" || op == "aten::sub" || op == "aten::neg" ||
        ((op == "aten::mul" || op == "aten::div") && (!right || right->dims.empty()));
    if (!is_linear) return std::nullopt;
    found.calls.push_back(calls[i]);
  }
  return std::nullopt;
}

struct LongSide {
  std::uint64_t polynomials = 0;
  std::unordered_set<std::uint32_t> calls;
  double on_long_side = 0, on_short_side = 0;
  std::int64_t whole_ns = 0, cost_ns = 0;
  std::int64_t rows = 0, columns = 0;  // of the first one
  SliceId first = kNone<SliceId>;
};

std::optional<LongSide> measure_long_side(const Facts& facts) {
  LongSide found;
  for (const CallSequence& calls : call_sequences(facts))
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto polynomial = polynomial_at(*facts.trace, calls, i);
      if (!polynomial) continue;
      if (found.polynomials++ == 0) {
        found.first = calls[i];
        found.rows = polynomial->rows;
        found.columns = polynomial->columns;
      }
      for (const SliceId call : polynomial->calls) found.calls.insert(raw(call));
      found.on_long_side += polynomial->on_long_side;
      found.on_short_side += polynomial->on_short_side;
    }
  if (found.polynomials == 0 || found.polynomials < facts.selection.steady.size())
    return std::nullopt;
  found.whole_ns = cost_of_calls(facts, found.calls);
  found.cost_ns = static_cast<std::int64_t>(static_cast<double>(found.whole_ns) *
                                            (1 - found.on_short_side / found.on_long_side));
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastLongSideShare) return std::nullopt;
  return found;
}

Finding tell_long_side(const Facts& facts, const LongSide& found) {
  const Value shape = text(analysis::shape_text({found.rows, found.columns})),
              square = text(analysis::shape_text({found.rows, found.rows})),
              small = text(analysis::shape_text({found.columns, found.columns}));
  const Value times = count(a_step(facts, found.polynomials));
  Finding finding;
  finding.verdict = say(
      facts,
      "X @ X.T of {} and its products are computed on the long side, as {}, {} [time|times] [per "
      "step]: {} [per step] ({}). X.T @ X is {} and leads to the same result.",
      {shape, square, times, ns(facts.per_step(found.whole_ns)),
       ratio(found.whole_ns, facts.steady_wall_ns()), small});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(
      say("multiplications on the short side: {} of those on the long side, as p(X X.T) X equals "
          "X p(X.T X) for any polynomial p; the rest of the time counts",
          {ratio(static_cast<std::int64_t>(found.on_short_side / found.on_long_side * 1e6),
                 1'000'000)}));
  finding.evidence.push_back(called_at(facts, found.first, say("the first of these products")));
  finding.try_next = {
      "transpose a matrix that has more rows than columns first, and the result back: X = X.mT; "
      "...; return X.mT",
      "by strides and shapes: if the second matrix is not the transpose of the first, this does "
      "not apply"};
  for (const char* covered : {"hotspot-kernel", "slow-gemm", "costly-operator", "unfused-chain"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say(facts, "X @ X.T of {} is computed on the long side: it and its products are {}",
          {shape, square});
  finding.action =
      say("Transpose X first: X.T @ X is {}, with the same result; transpose that back", {small});
  return finding;
}

}  // namespace

extern constinit const Rule long_side_rule = {
    .id = "long-side",
    .question = "are products with a transpose made on the long side?",
    .meant_by = "muon newton schulz orthogonal gram transpose matmul",
    .order = 492,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_long_side, tell_long_side>,
};

}  // namespace lanescope::explain::rules
