// Inference computes the adapters of a fine-tuned model (LoRA) next to its linear layers, although they can be a part of the weights.
//
// Idea: linear(x, W), linear(x, A), linear(., B), then a sum, with a rank that is far below the sizes of W. W + B A gives the same
// result in one product, so all calls but the first can go.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;

namespace {

constexpr double kLeastAdapterShare = 0.05;
constexpr std::uint64_t kFewestAdapters = 4;    // in each step
constexpr std::int64_t kLeastSizeOfRank = 8;    // sizes of W are at least so many ranks
constexpr std::size_t kMostCallsOfAdapter = 8;  // casts, dropout and scaling are among them

struct LinearSizes {
  Sizes input;
  std::int64_t out = 0, in = 0;  // of the weight
};

std::optional<LinearSizes> linear_sizes(const Trace& trace, SliceId op) {
  if (trace.name(op) != "aten::linear") return std::nullopt;
  const auto inputs = operator_inputs(trace, op);
  const auto rows = inputs.tensor(0), weight = inputs.tensor(1);
  if (!rows || !weight || rows->rank() < 2 || weight->rank() != 2 || weight->dims[0] <= 0 ||
      rows->dims.back() != weight->dims[1])
    return std::nullopt;
  return LinearSizes{rows->dims, weight->dims[0], weight->dims[1]};
}

// Casts, dropout, and a scaling by one number: a product with one number for each row (a gate) is no part of any weight.
bool is_between_adapters(const Trace& trace, SliceId call) {
  const std::string_view op = trace.name(call);
  if (op == "aten::to" || op == "aten::dropout") return true;
  if (op != "aten::mul" && op != "aten::mul_") return false;
  const auto factor = operator_inputs(trace, call).tensor(1);
  return factor && factor->rank() == 0;
}

struct Adapter {
  std::size_t first = 0, end = 0;  // calls [first, end): what a merged weight spares
  std::int64_t rank = 0;
};

// The adapter of the linear layer calls[at]; nothing: it has none, or sizes are not recorded.
std::optional<Adapter> adapter_after(const Trace& trace, const CallSequence& calls,
                                     std::size_t at) {
  const auto layer = linear_sizes(trace, calls[at]);
  if (!layer) return std::nullopt;
  Adapter found{at + 1, 0, 0};
  bool has_second = false;
  for (std::size_t i = at + 1; i < calls.size() && i <= at + kMostCallsOfAdapter; ++i) {
    const std::string_view op = trace.name(calls[i]);
    if (has_second && (op == "aten::add" || op == "aten::add_")) {
      found.end = i + 1;
      return found;
    }
    if (is_between_adapters(trace, calls[i])) continue;
    const auto sizes = linear_sizes(trace, calls[i]);
    if (!sizes || has_second) return std::nullopt;
    if (found.rank == 0) {  // A: the same rows, to a few numbers each
      if (sizes->input != layer->input || sizes->out > layer->in / kLeastSizeOfRank ||
          sizes->out > layer->out / kLeastSizeOfRank)
        return std::nullopt;
      found.rank = sizes->out;
    } else {  // B: from these to the size of the layer's result
      if (sizes->in != found.rank || sizes->out != layer->out) return std::nullopt;
      has_second = true;
    }
  }
  return std::nullopt;
}

struct UnmergedAdapters {
  std::vector<SliceId> calls;
  std::uint64_t adapters = 0;
  std::int64_t rank = 0;           // of the first
  SliceId layer = kNone<SliceId>;  // the linear layer before the first
  std::int64_t cost_ns = 0;
};

std::optional<UnmergedAdapters> measure_unmerged_adapter(const Facts& facts) {
  const Trace& trace = *facts.trace;
  if (!backward_nodes(facts).empty() || !optimizer_steps(facts).empty()) return std::nullopt;
  UnmergedAdapters found;
  for (const CallSequence& calls : call_sequences(facts))
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto adapter = adapter_after(trace, calls, i);
      if (!adapter) continue;
      if (found.adapters++ == 0) {
        found.rank = adapter->rank;
        found.layer = calls[i];
      }
      found.calls.insert(found.calls.end(),
                         calls.begin() + static_cast<std::ptrdiff_t>(adapter->first),
                         calls.begin() + static_cast<std::ptrdiff_t>(adapter->end));
      i = adapter->end - 1;
    }
  if (found.adapters < kFewestAdapters * facts.selection.steady.size()) return std::nullopt;
  found.cost_ns = cost_of_spared(facts, found.calls);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastAdapterShare) return std::nullopt;
  return found;
}

Finding tell_unmerged_adapter(const Facts& facts, const UnmergedAdapters& found) {
  const Value times = count(found.adapters), rank = count(static_cast<std::uint64_t>(found.rank));
  const Value steps = count(facts.selection.steady.size());
  Finding finding;
  finding.verdict = say(facts,
                        "Adapters (LoRA) of rank {} are computed next to linear layers, {} times "
                        "[in {} steps]: {} [per step] ({}). A merged weight needs no time of its "
                        "own.",
                        {rank, times, steps, ns(facts.per_step(found.cost_ns)),
                         ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.spared_calls = found.calls;
  finding.arithmetic.push_back(
      say("counted: after linear(x, W) a product of the same x with a matrix of few rows, one of "
          "its result to the size of W's, and a sum; all but the first product can go, because "
          "x (W + B A) is the same"));
  finding.evidence.push_back(called_at(facts, found.layer, say("the linear layer of the first")));
  finding.try_next = {
      "merge the adapters into the weights once, after loading: model = model.merge_and_unload() "
      "(peft), or W += scale * B @ A. Results differ by rounding alone",
      "leave them apart where one model serves several adapters at once, or where weights are "
      "quantized: merging then rounds them anew"};
  finding.brief =
      say(facts, "Adapters of rank {} are computed next to their layers, {} times [in {} steps]",
          {rank, times, steps});
  finding.action = say(
      "Merge them into the weights once: model.merge_and_unload() (peft), or W += scale * B @ A");
  return finding;
}

}  // namespace

extern constinit const Rule unmerged_adapter_rule = {
    .id = "unmerged-adapter",
    .question = "are adapters (LoRA) computed that could be merged into the weights?",
    .meant_by = "lora peft adapter merge rank inference",
    .order = 481,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_unmerged_adapter, tell_unmerged_adapter>,
    .fix = Fix::kCalls,
};

}  // namespace lanescope::explain::rules
