// Products of two square matrices of one size follow each other. If each takes the result of the one before, they are a power.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;

namespace {

constexpr double kLeastPowerShare = 0.1;
constexpr std::uint64_t kFewestSquareProducts = 8;

// [.., n, n] times [.., n, n].
std::optional<Sizes> square_product(const Trace& trace, SliceId op) {
  if (trace.name(op) != "aten::matmul" && trace.name(op) != "aten::mm" &&
      trace.name(op) != "aten::bmm")
    return std::nullopt;
  const auto inputs = operator_inputs(trace, op);
  const auto a = inputs.tensor(0), b = inputs.tensor(1);
  if (!a || !b || a->dims != b->dims || a->rank() < 2 || a->dims.back() != a->dims[a->rank() - 2] ||
      a->dims.back() < 2)
    return std::nullopt;
  return a->dims;
}

struct Powers {
  std::unordered_set<std::uint32_t> calls;
  std::uint64_t longest = 0;  // products of a run
  SliceId example = kNone<SliceId>;
  Sizes shape;
  double needed_of_all = 0;  // products that squaring needs, summed over runs
  std::int64_t cost_ns = 0;
};

// A^n takes n - 1 products one by one. Squaring takes one for each binary digit of n after the first, and one more for each 1.
double products_by_squaring(std::uint64_t products) {
  const std::uint64_t power = products + 1;
  double squares = 0, others = 0;
  for (std::uint64_t rest = power; rest > 1; rest /= 2) {
    ++squares;
    others += static_cast<double>(rest % 2);
  }
  return squares + others;
}

std::optional<Powers> measure_repeated_product(const Facts& facts) {
  const Trace& trace = *facts.trace;
  Powers found;
  std::vector<SliceId> run;
  Sizes shape;
  const auto finish = [&] {
    if (run.size() >= kFewestSquareProducts) {
      for (const SliceId each : run) found.calls.insert(raw(each));
      found.needed_of_all += products_by_squaring(run.size());
      if (run.size() > found.longest) {
        found.longest = run.size();
        found.example = run.front();
        found.shape = shape;
      }
    }
    run.clear();
  };
  for (const CallSequence& sequence : call_sequences(facts)) {
    for (const SliceId op : sequence) {
      if (trace.name(op).starts_with(kEvaluateNode)) return std::nullopt;
      const auto square = square_product(trace, op);
      if (!square || (!run.empty() && *square != shape)) finish();
      if (!square) continue;
      shape = *square;
      run.push_back(op);
    }
    finish();
  }
  if (found.calls.empty() || found.longest < kFewestSquareProducts) return std::nullopt;
  const double spared = 1 - found.needed_of_all / static_cast<double>(found.calls.size());
  const std::int64_t all_ns = std::min(cost_of_calls(facts, found.calls), facts.steady_wall_ns());
  found.cost_ns = std::llround(spared * static_cast<double>(all_ns));
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastPowerShare) return std::nullopt;
  return found;
}

Finding tell_repeated_product(const Facts& facts, const Powers& found) {
  const Value op = name(facts.trace->name(found.example)),
              shape = text(analysis::shape_text(found.shape)),
              squares = count(std::llround(products_by_squaring(found.longest)));
  Finding finding;
  finding.verdict =
      say(facts,
          "{} products of two {} matrices follow each other, with nothing between them. If each "
          "multiplies the result of the one before by the same matrix, they are a power, for which "
          "{} products are enough: {} [per step] ({}) less.",
          {count(found.longest), shape, squares, ns(facts.per_step(found.cost_ns)),
           ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(
      say("counted: {} or more neighbouring products of two matrices of one size, in a program "
          "without a backward pass; their time, less that of the products that squaring needs: one "
          "for each binary digit of the power after the first, and one more for each 1 among them",
          {count(kFewestSquareProducts)}));
  finding.evidence.push_back(called_at(facts, found.example, say("the first of them")));
  finding.try_next = {
      "torch.linalg.matrix_power(A, n) squares: for n = 64 it needs 6 products instead of 63",
      "if only A^n @ x is needed, multiply the vectors: A @ (A @ x) is far less than a power",
      "if the matrices differ, this does not apply"};
  for (const char* covered : {"hotspot-kernel", "same-flops", "slow-gemm", "fp32-matmul"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say("{} x {} of {} in a row: a power, if it is the same matrix",
                      {count(found.longest), op, shape});
  finding.action = say("Square: torch.linalg.matrix_power needs {} products instead of {}",
                       {squares, count(found.longest)});
  return finding;
}

}  // namespace

extern constinit const Rule repeated_product_rule = {
    .id = "repeated-product",
    .question = "is a matrix multiplied by itself again and again?",
    .meant_by = "matrix power squaring markov chain product repeated",
    .order = 473,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_repeated_product, tell_repeated_product>,
};

}  // namespace lanescope::explain::rules
