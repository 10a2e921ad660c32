// Ranges of large tensors are measured, and only update running ranges: observers that still measure while a model is served.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/tensor_sizes.h"

namespace lanescope::explain::rules {

using analysis::Sizes;
using analysis::TensorArguments;

namespace {

constexpr double kLeastRangesShare = 0.05;
constexpr double kLeastMeasured = 65'536;  // elements of the tensor
constexpr double kMostOfMeasured = 1.0 / 64;
constexpr std::size_t kMostRangeInputs = 6;  // of a call that are looked at

bool is_one_of_names(std::string_view op, const auto& names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

// Keeps the larger or the smaller of two: a running range.
bool keeps_extreme(std::string_view op) {
  static constexpr std::array<std::string_view, 8> kExtremes = {
      "aten::maximum", "aten::minimum", "aten::max",        "aten::min",
      "aten::fmax",    "aten::fmin",    "aten::logical_or", "aten::bitwise_or"};
  return is_one_of_names(op, kExtremes);
}

bool finds_extreme(std::string_view op) {
  static constexpr std::array<std::string_view, 6> kFinders = {
      "aten::amax", "aten::amin", "aten::max", "aten::min", "aten::aminmax", "aten::any"};
  return is_one_of_names(op, kFinders);
}

// Made for the measurement only; a network's own layers are other operators.
bool prepares(std::string_view op) {
  static constexpr std::array<std::string_view, 5> kPreparing = {
      "aten::abs", "aten::isnan", "aten::isinf", "aten::clone", "aten::detach"};
  return is_one_of_names(op, kPreparing);
}

struct RangeMeasured {
  std::vector<SliceId> calls;
  SliceId reduction = kNone<SliceId>;
  double elements = 0, bytes = 0;
  Sizes kept;  // of the running range
};

// A reduction at `at`, with what prepares it, and the running range that takes its result.
std::optional<RangeMeasured> range_measured_at(const Trace& trace, const CallSequence& calls,
                                               std::size_t at) {
  if (!finds_extreme(trace.name(calls[at]))) return std::nullopt;
  const TensorArguments inputs = operator_inputs(trace, calls[at]);
  const auto tensor = inputs.tensor(0);
  if (!tensor || tensor->elements() < kLeastMeasured || inputs.tensor(1)) return std::nullopt;
  RangeMeasured found;
  found.reduction = calls[at];
  found.elements = tensor->elements();
  found.bytes = tensor->dense_bytes();
  found.calls.push_back(calls[at]);
  std::size_t next = at + 1;
  for (; next < calls.size(); ++next) {
    const std::string_view label = trace.name(calls[next]);
    const TensorArguments taken = operator_inputs(trace, calls[next]);
    const auto a = taken.tensor(0), b = taken.tensor(1);
    if (is_view(label) && (!a || a->elements() <= kMostOfMeasured * found.elements)) continue;
    if (!keeps_extreme(label) || !a || !b || a->dims != b->dims ||
        a->elements() > kMostOfMeasured * found.elements)
      break;
    found.kept = a->dims;
    found.calls.push_back(calls[next]);
  }
  if (found.calls.size() < 2) return std::nullopt;
  for (std::size_t i = at; i-- > 0 && prepares(trace.name(calls[i]));) {
    const auto before = operator_inputs(trace, calls[i]).tensor(0);
    if (!before || before->dims != tensor->dims) break;
    found.calls.push_back(calls[i]);
  }
  return found;
}

// Something takes a range together with a larger tensor, and is no layer with a bias: scales, clamps, quantization.
bool applies_range(const Trace& trace, SliceId op, const Sizes& range) {
  const std::string_view label = trace.name(op);
  const bool is_quantizer = label.find("quantize") != std::string_view::npos ||
                            label.find("scaled_mm") != std::string_view::npos;
  if (is_quantizer) return true;
  if (!works_on_each_element(label)) return false;
  const TensorArguments inputs = operator_inputs(trace, op);
  bool has_range = false, has_larger = false;
  for (std::size_t k = 0; k < kMostRangeInputs; ++k)
    if (const auto tensor = inputs.tensor(k)) {
      has_range = has_range || tensor->dims == range;
      has_larger = has_larger || tensor->elements() > analysis::element_count(range);
    }
  return has_range && has_larger;
}

struct RunningRanges {
  std::uint64_t ranges = 0;
  double bytes = 0;  // read by the reductions
  std::vector<SliceId> spared;
  RangeMeasured first;
  std::int64_t cost_ns = 0;
};

std::optional<RunningRanges> measure_running_ranges(const Facts& facts) {
  const Trace& trace = *facts.trace;
  RunningRanges found;
  for (const CallSequence& calls : call_sequences(facts))
    for (std::size_t i = 0; i < calls.size(); ++i) {
      auto range = range_measured_at(trace, calls, i);
      if (!range) continue;
      found.spared.insert(found.spared.end(), range->calls.begin(), range->calls.end());
      found.bytes += range->bytes;
      if (found.ranges++ == 0) found.first = *std::move(range);
    }
  if (found.ranges == 0 || found.ranges < facts.selection.steady.size()) return std::nullopt;
  for (const CallSequence& calls : call_sequences(facts))
    for (const SliceId call : calls)
      if (trace.name(call).starts_with(kEvaluateNode) ||
          applies_range(trace, call, found.first.kept))
        return std::nullopt;
  found.cost_ns = cost_of_spared(facts, found.spared);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastRangesShare) return std::nullopt;
  return found;
}

Finding tell_running_ranges(const Facts& facts, const RunningRanges& found) {
  const Value ranges = count(found.ranges / step_count(facts)),
              reduction = name(facts.trace->name(found.first.reduction)),
              read = bytes(facts.per_step(static_cast<std::int64_t>(found.bytes)));
  Finding finding;
  finding.verdict = say(facts,
                        "{} measures ranges of {} [tensor|tensors] [per step], {} in all: "
                        "{} [per step] ({}). They only update running ranges, and no operator "
                        "applies these to data.",
                        {reduction, ranges, read, ns(facts.per_step(found.cost_ns)),
                         ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.ranges, finding);
  finding.sample_noun = "range";
  finding.spared_calls = found.spared;
  finding.arithmetic.push_back(say(
      "counted: amax, amin, max, min, aminmax or any of a large tensor, then maximum, minimum or "
      "the like of two tensors as large as its result; abs, isnan and isinf right before it. No "
      "backward pass, and no elementwise operator takes a range with a larger tensor"));
  finding.evidence.push_back(
      called_at(facts, found.first.reduction, say("the first of these measurements")));
  finding.try_next = {
      "remove the hooks or observers once they have measured (handle.remove(), or "
      "torch.ao.quantization.disable_observer)",
      "if the ranges are still wanted: measure only every few steps, or only a part of the rows"};
  for (const char* covered : {"hotspot-kernel", "memory-roof", "no-roof", "unfused-chain"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say(
      facts, "{} measures the ranges of {} [tensor|tensors] [per step], but no operator uses them",
      {reduction, ranges});
  finding.action =
      say("Remove the hook or observer once it has measured enough; until then measure less often");
  return finding;
}

}  // namespace

extern constinit const Rule running_ranges_rule = {
    .id = "running-ranges",
    .question = "are ranges of tensors measured, but not used?",
    .meant_by = "observer hook range amax max abs nan calibration quantization serving",
    .order = 456,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_running_ranges, tell_running_ranges>,
};

}  // namespace lanescope::explain::rules
