// A tensor is padded to more than twice its length, and the result is cut back: most of the work is on zeros.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
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
using analysis::Tensor;
using analysis::TensorArguments;

namespace {

constexpr double kLeastPaddedShare = 0.1;
constexpr double kLeastLengthening = 2.2;  // a convolution by transforms may need twice the length
constexpr std::int64_t kLeastPaddedLength = 1024;

// One dimension of a tensor becomes longer; the new elements are zeros.
struct Padding {
  std::size_t dim = 0;
  std::int64_t content = 0, length = 0;
};

std::optional<Padding> with_lengths(const Tensor& tensor, std::size_t dim, std::int64_t length) {
  const std::int64_t content = tensor.dims[dim];
  if (content <= 0 || length < kLeastPaddedLength ||
      static_cast<double>(length) < kLeastLengthening * static_cast<double>(content))
    return std::nullopt;
  return Padding{dim, content, length};
}

bool is_transform(std::string_view op) { return op == "aten::fft_rfft" || op == "aten::fft_fft"; }
bool is_pad(std::string_view op) { return op == "aten::constant_pad_nd" || op == "aten::pad"; }

// The padding that an operator makes: an FFT that is longer than its input, or F.pad of the last dimension.
std::optional<Padding> padding_of(std::string_view op, const TensorArguments& inputs) {
  if (!is_transform(op) && !is_pad(op)) return std::nullopt;
  const auto tensor = inputs.tensor(0);
  if (!tensor || tensor->rank() == 0) return std::nullopt;
  const std::size_t last = tensor->rank() - 1;
  if (is_transform(op)) {
    const auto length = inputs.value(1), dim = inputs.value(2);
    if (!length || !length->integer) return std::nullopt;
    const std::int64_t at = dim && dim->integer ? *dim->integer : -1;
    if (at != -1 && at != static_cast<std::int64_t>(last)) return std::nullopt;
    return with_lengths(*tensor, last, *length->integer);
  }
  const std::vector<double> pads = inputs.numbers(1);
  if (pads.size() < 2 || std::any_of(pads.begin() + 2, pads.end(), [](double p) { return p != 0; }))
    return std::nullopt;
  const double added = pads[0] + pads[1];
  if (!(added > 0 && added < 1e12)) return std::nullopt;
  return with_lengths(*tensor, last, tensor->dims[last] + std::llround(added));
}

struct PaddedWork {
  Padding padding;
  Sizes shape;  // padded
  std::vector<SliceId> calls;
  SliceId cut = kNone<SliceId>;
  std::int64_t kept = 0;
};

// The padded length, or that of its spectrum, in the dimension that was padded.
bool is_padded(const Tensor& tensor, const Padding& padding) {
  if (tensor.rank() <= padding.dim) return false;
  const std::int64_t size = tensor.dims[padding.dim];
  return size == padding.length || size == padding.length / 2 + 1;
}

// From the padding at `first` to the slice that cuts it off. Nothing: no slice does, or something reads the padded tensor later.
std::optional<PaddedWork> padded_work(const Trace& trace, const CallSequence& calls,
                                      std::size_t first) {
  const std::string_view op = trace.name(calls[first]);
  if (!is_transform(op) && !is_pad(op)) return std::nullopt;
  const TensorArguments own = operator_inputs(trace, calls[first]);
  const auto padding = padding_of(op, own);
  if (!padding) return std::nullopt;
  PaddedWork found{*padding, own.tensor(0)->dims, {calls[first]}, kNone<SliceId>, 0};
  found.shape[padding->dim] = padding->length;
  for (std::size_t i = first + 1; i < calls.size(); ++i) {
    const std::string_view label = trace.name(calls[i]);
    const TensorArguments inputs = operator_inputs(trace, calls[i]);
    if (padding_of(label, inputs)) break;  // the next one
    const auto tensor = inputs.tensor(0);
    if (!tensor || !is_padded(*tensor, *padding)) continue;
    const auto dim = inputs.value(1);
    const auto taken = label == "aten::slice" ? taken_of(label, inputs, 0) : std::optional<Taken>{};
    if (taken && tensor->dims[padding->dim] == padding->length && dim && dim->integer &&
        (*dim->integer == -1 || *dim->integer == static_cast<std::int64_t>(padding->dim))) {
      const double rows = tensor->elements() / static_cast<double>(padding->length);
      if (rows <= 0) return std::nullopt;
      found.cut = calls[i];
      found.kept = std::llround(taken->elements / rows);
      continue;
    }
    if (found.cut != kNone<SliceId>) return std::nullopt;
    if (!is_view(label)) found.calls.push_back(calls[i]);
  }
  const std::int64_t used = std::max(found.kept, padding->content);
  if (found.cut == kNone<SliceId> || found.kept <= 0 ||
      static_cast<double>(padding->length) < kLeastLengthening * static_cast<double>(used))
    return std::nullopt;
  return found;
}

struct PaddedLength {
  PaddedWork first;
  std::unordered_set<std::uint32_t> calls;
  std::uint64_t times = 0;
  double used = 0;  // of the padded length
  std::int64_t cost_ns = 0;
};

std::optional<PaddedLength> measure_padded_length(const Facts& facts) {
  const Trace& trace = *facts.trace;
  PaddedLength found;
  for (const CallSequence& sequence : call_sequences(facts))
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      auto work = padded_work(trace, sequence, i);
      if (!work) continue;
      if (found.times > 0 && work->shape != found.first.shape) continue;
      for (const SliceId call : work->calls) found.calls.insert(raw(call));
      if (found.times++ == 0) found.first = *std::move(work);
    }
  if (found.times == 0 || found.times < facts.selection.steady.size()) return std::nullopt;
  const Padding& padding = found.first.padding;
  found.used = static_cast<double>(std::max(found.first.kept, padding.content)) /
               static_cast<double>(padding.length);
  found.cost_ns =
      std::llround((1 - found.used) * static_cast<double>(cost_of_calls(facts, found.calls)));
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastPaddedShare) return std::nullopt;
  return found;
}

Finding tell_padded_length(const Facts& facts, const PaddedLength& found) {
  const Trace& trace = *facts.trace;
  const Padding& padding = found.first.padding;
  const SliceId first = found.first.calls.front();
  const Value op = name(trace.name(first)),
              content = count(static_cast<std::uint64_t>(padding.content)),
              length = count(static_cast<std::uint64_t>(padding.length)),
              zeros = ratio(padding.length - padding.content, padding.length);
  Finding finding;
  finding.verdict = say(
      facts,
      "{} pads a length of {} to {}, and the result is cut back to {}: {} of the padded length is "
      "zeros. Up to {} [per step] ({}) goes into what is not used.",
      {op, content, length, count(static_cast<std::uint64_t>(found.first.kept)), zeros,
       ns(facts.per_step(found.cost_ns)), ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(say(
      "counted: the operators from the padding to the slice that cuts it off, {} each, times 1 - "
      "{}, the part of the padded length that is used",
      {text(analysis::shape_text(found.first.shape)),
       ratio(std::llround(found.used * 1e6), 1'000'000)}));
  finding.evidence.push_back(called_at(facts, first, say("the padding")));
  finding.evidence.push_back(called_at(facts, found.first.cut, say("the slice that cuts it off")));
  finding.try_next = {
      "a convolution by FFT needs the length of the signal + that of the filter - 1: pad to the "
      "next length with small factors (scipy.fft.next_fast_len), not further",
      "for batches: pad to the longest of the batch, not to a fixed length"};
  for (const char* covered : {"hotspot-kernel", "no-roof", "costly-operator", "memory-roof"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say("{} works on rows of {} elements: {} of each are zeros, only {} are used",
                      {op, length, zeros, content});
  finding.action =
      say("Pad less: for a convolution, the signal's length + the filter's - 1 is enough");
  return finding;
}

}  // namespace

extern constinit const Rule padded_length_rule = {
    .id = "padded-length",
    .question = "is a tensor padded to far more than is used of it?",
    .meant_by = "padding fft transform zeros length convolution pad",
    .order = 474,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_padded_length, tell_padded_length>,
};

}  // namespace lanescope::explain::rules
