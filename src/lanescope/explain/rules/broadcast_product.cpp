// A matrix product that is written as a broadcast product and a sum. The large tensor in between is
// written to memory and read again, and tensor cores are not used.
#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/rules/calls_with_work.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;
using analysis::Tensor;
using analysis::TensorArguments;

namespace {

constexpr double kLeastBroadcastProductShare = 0.03;
// How many times larger than either input the tensor in between is, at least.
constexpr double kLeastGrowth = 4;

// The size of dimension `from_end`, counted from the last; 1 for dimensions that the shape lacks.
std::int64_t size_at(const Tensor& tensor, std::size_t from_end) {
  return from_end < tensor.rank() ? tensor.dim(from_end) : 1;
}

// The shape of a * b. Nothing: the shapes do not fit, or the result is less than kLeastGrowth times as large as the larger one.
std::optional<Sizes> grown_shape(const Tensor& a, const Tensor& b) {
  const std::size_t rank = std::max(a.rank(), b.rank());
  Sizes shape(rank);
  double elements = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t left = size_at(a, i), right = size_at(b, i);
    if (left != right && left != 1 && right != 1) return std::nullopt;
    shape[rank - 1 - i] = std::max(left, right);
    elements *= static_cast<double>(std::max(left, right));
  }
  if (elements < kLeastGrowth * std::max(a.elements(), b.elements())) return std::nullopt;
  return shape;
}

// True: the sum is over dimensions that both inputs have, as in a matrix product.
bool sums_what_both_have(const TensorArguments& sum, const Tensor& a, const Tensor& b,
                         const Sizes& shape) {
  const std::vector<double> dims = sum.numbers(1);
  const auto rank = static_cast<std::int64_t>(shape.size());
  return !dims.empty() && std::all_of(dims.begin(), dims.end(), [&](double dim) {
    const auto at = static_cast<std::int64_t>(dim) + (dim < 0 ? rank : 0);
    if (at < 0 || at >= rank) return false;
    const auto from_end = static_cast<std::size_t>(rank - 1 - at);
    return size_at(a, from_end) > 1 && size_at(b, from_end) > 1;
  });
}

// The next call that is no view; the end: none.
std::size_t next_call(const Trace& trace, const CallSequence& calls, std::size_t at) {
  do {
    ++at;
  } while (at < calls.size() && is_view(trace.name(calls[at])));
  return at;
}

struct BroadcastProducts {
  Savings work;
  std::uint64_t products = 0;
  SliceId largest = kNone<SliceId>;  // its aten::mul
  double largest_bytes = 0;          // of what is in between
};

std::optional<BroadcastProducts> measure_broadcast_product(const Facts& facts) {
  const Trace& trace = *facts.trace;
  BroadcastProducts found;
  std::unordered_set<std::uint32_t> calls;
  for (const CallSequence& sequence : call_sequences(facts))
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      if (trace.name(sequence[i]) != "aten::mul") continue;
      const std::size_t next = next_call(trace, sequence, i);
      if (next == sequence.size() || trace.name(sequence[next]) != "aten::sum") continue;
      const TensorArguments factors = operator_inputs(trace, sequence[i]);
      const auto a = factors.tensor(0), b = factors.tensor(1);
      if (!a || !b) continue;
      const auto shape = grown_shape(*a, *b);
      if (!shape) continue;
      const TensorArguments sum = operator_inputs(trace, sequence[next]);
      const auto summed = sum.tensor(0);
      if (!summed || summed->dims != *shape || !sums_what_both_have(sum, *a, *b, *shape)) continue;
      ++found.products;
      calls.insert(raw(sequence[i]));
      calls.insert(raw(sequence[next]));
      if (summed->dense_bytes() > found.largest_bytes) {
        found.largest_bytes = summed->dense_bytes();
        found.largest = sequence[i];
      }
    }
  if (calls.empty()) return std::nullopt;
  found.work = work_in_calls(facts, calls);
  if (wall_share(facts, found.work.saved_ns()) < kLeastBroadcastProductShare) return std::nullopt;
  return found;
}

Finding tell_broadcast_product(const Facts& facts, const BroadcastProducts& found) {
  const auto in_between = static_cast<std::int64_t>(found.largest_bytes);
  const std::uint64_t steps = facts.selection.steady.size();
  Finding finding;
  finding.verdict = say(facts,
                        "A matrix product is written as a product by broadcasting and a sum, {} "
                        "[time|times] [per step]: {} of GPU time [per step].",
                        {count(found.products / steps), ns(facts.per_step(found.work.time_ns()))});
  rate_calls(facts, found.work, finding);
  finding.arithmetic.push_back(
      say("counted: aten::mul whose result is at least 4 times as large as either input, and the "
          "aten::sum after it over dimensions that both inputs have"));
  finding.arithmetic.push_back(
      say("the largest result of aten::mul, {}, is written to memory and read again; a matrix "
          "product takes some of this time again",
          {bytes(in_between)}));
  finding.evidence.push_back(called_at(
      facts, found.largest, say("aten::mul, the largest: {} before the sum", {bytes(in_between)})));
  finding.try_next = {
      "use torch.matmul, torch.bmm or torch.einsum: they add up while they multiply, and use "
      "tensor cores where the type allows"};
  for (const char* covered :
       {"hotspot-kernel", "memory-roof", "no-roof", "unfused-chain", "inflated-tensor"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say("aten::mul and aten::sum compute a matrix product, and store {} in between",
                      {bytes(in_between)});
  finding.action =
      say("Use torch.matmul or torch.einsum: they never store the large product in between");
  return finding;
}

}  // namespace

extern constinit const Rule broadcast_product_rule = {
    .id = "broadcast-product",
    .question = "is a matrix product written as mul and sum?",
    .meant_by = "broadcast einsum matmul outer",
    .order = 496,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .only_if = kernels_matter,
    .then_needs = {need::kShapes},
    .run = measure_and_tell<measure_broadcast_product, tell_broadcast_product>,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
