// A sum, a mean or a maximum over windows that overlap: each number is read once for each window that holds it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/tensor_sizes.h"
#include "lanescope/model/names_where.h"

namespace lanescope::explain::rules {

using analysis::Tensor;

namespace {

constexpr double kLeastWindowsShare = 0.05;
constexpr double kLeastReads = 8;  // of each number
constexpr double kLeastWindowElements = 100'000;

// How often a tensor contains each number of its memory, on average, from its strides. 1: once, or not known.
double reads_of_each(const Tensor& tensor) {
  if (!tensor.strides) return 1;
  double elements = 1, span = 1;
  for (std::size_t i = 0; i < tensor.rank(); ++i) {
    const std::int64_t stride = (*tensor.strides)[i];
    if (tensor.dims[i] <= 1 || stride == 0) continue;  // expand() repeats what it reads once
    elements *= static_cast<double>(tensor.dims[i]);
    span += static_cast<double>(tensor.dims[i] - 1) * static_cast<double>(stride);
  }
  return elements / span;
}

// Operators that taken_of() knows as sums and reductions; the others' inputs are not read.
bool may_reduce(std::string_view op) {
  constexpr std::string_view kReducing[] = {"sum", "mean", "max",  "min",    "std", "var",
                                            "all", "any",  "norm", "median", "prod"};
  return std::any_of(std::begin(kReducing), std::end(kReducing), [&](std::string_view word) {
    return op.find(word) != std::string_view::npos;
  });
}

struct OverlappingWindows {
  std::unordered_set<std::uint32_t> calls;
  SliceId longest = kNone<SliceId>;
  double reads = 1;  // of the longest
  double spared_share = 0;
  std::int64_t whole_ns = 0, cost_ns = 0;
};

std::optional<OverlappingWindows> measure_overlapping_windows(const Facts& facts) {
  const Trace& trace = *facts.trace;
  OverlappingWindows found;
  NamesWhere is_reducing(trace, may_reduce);
  for (const CallSequence& calls : call_sequences(facts))
    for (const SliceId op : calls) {
      if (!is_reducing(op)) continue;
      const auto inputs = operator_inputs(trace, op);
      const auto tensor = inputs.tensor(0);
      if (!tensor || tensor->elements() < kLeastWindowElements) continue;
      const double reads = reads_of_each(*tensor);
      if (reads < kLeastReads) continue;
      const auto taken = taken_of(trace.name(op), inputs, 0);
      if (!taken || (taken->kind != TakerKind::kAdds && taken->kind != TakerKind::kReduces))
        continue;
      found.calls.insert(raw(op));
      found.spared_share += 1 - 1 / reads;
      if (found.longest != kNone<SliceId> && trace.dur_ns(op) <= trace.dur_ns(found.longest))
        continue;
      found.longest = op;
      found.reads = reads;
    }
  if (found.calls.empty() || found.calls.size() < facts.selection.steady.size())
    return std::nullopt;
  found.whole_ns = cost_of_calls(facts, with_backward_nodes(facts, found.calls));
  found.cost_ns =
      static_cast<std::int64_t>(static_cast<double>(found.whole_ns) * found.spared_share /
                                static_cast<double>(found.calls.size()));
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastWindowsShare) return std::nullopt;
  return found;
}

Finding tell_overlapping_windows(const Facts& facts, const OverlappingWindows& found) {
  const Value op = name(facts.trace->name(found.longest)),
              reads = count(static_cast<std::uint64_t>(found.reads + 0.5));
  Finding finding;
  finding.verdict = say(
      facts,
      "{} goes over windows that overlap, {} [time|times] [per step]: it reads each number about "
      "{} times, {} [per step] ({}).",
      {op, count(a_step(facts, found.calls.size())), reads, ns(facts.per_step(found.whole_ns)),
       ratio(found.whole_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(
      say("counted: sums, means, maxima and others over a tensor whose strides overlap, as unfold "
          "makes it; its elements against the numbers of the memory that it covers"));
  finding.evidence.push_back(called_at(facts, found.longest, say("the longest of these calls")));
  finding.try_next = {
      "a sum or mean of a window is a difference of two running sums: cumsum in float64, then "
      "sums[:, n:] - sums[:, :-n]",
      "avg_pool1d, max_pool1d and conv1d make windows without a view of them"};
  for (const char* covered : {"costly-operator", "hotspot-kernel", "memory-roof"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say(facts, "{} goes over windows that overlap: it reads each number {} times", {op, reads});
  finding.action =
      say("Sum or mean: differences of a cumsum in float64; maximum: max_pool1d; not unfold");
  return finding;
}

}  // namespace

extern constinit const Rule overlapping_windows_rule = {
    .id = "overlapping-windows",
    .question = "are overlapping windows read number by number?",
    .meant_by = "unfold window moving average rolling sliding as_strided",
    .order = 471,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_overlapping_windows, tell_overlapping_windows>,
};

}  // namespace lanescope::explain::rules
