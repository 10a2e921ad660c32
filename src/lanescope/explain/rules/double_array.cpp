// NumPy computes in float64, its array becomes a float64 tensor, and a later call casts the tensor to a narrower type. Up to the
// cast, each stage moves twice as many bytes as with float32: NumPy's work, the copy to the GPU, and the cast.
//
// Idea: torch.from_numpy() records an aten::lift_fresh with shape and type. Later calls that read a float64 tensor with as many
// elements are assumed to read this tensor, up to the call that casts it.
// Example: lift_fresh [128, 3, 64, 64] double, a copy of [128, 12288] double to the GPU, a cast to bfloat16.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/needs.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Tensor;
using analysis::Window;

namespace {

constexpr double kLeastDoubleArrayShare = 0.05;
constexpr double kLeastDoubleBytes = 1 << 20;
constexpr std::size_t kFurthestCast = 64;  // searches so many calls after lift_fresh

bool is_double(const Tensor& tensor) {
  return tensor.type->is_floating && tensor.type->size_bytes == 8;
}

// The narrower type to which a call casts a float64 tensor; null: the call makes no such cast.
const analysis::TypeRow* narrower_type(const Trace& trace, SliceId op) {
  const Track& track = trace.track(op);
  for (std::uint32_t i = raw(op);
       i < track.first_slice + track.slice_count && trace.start_ns(SliceId{i}) < trace.end_ns(op);
       ++i) {
    if (trace.name(SliceId{i}) != "aten::copy_") continue;
    const auto inputs = operator_inputs(trace, SliceId{i});
    const auto to = inputs.tensor(0), from = inputs.tensor(1);
    if (to && from && is_double(*from) && to->type->is_floating && to->type->size_bytes < 8)
      return to->type;
  }
  return nullptr;
}

struct DoubleArray {
  std::uint64_t arrays = 0;
  std::int64_t size_bytes = 0;
  std::unordered_set<std::uint32_t> calls;  // calls that take a float64 array
  std::vector<Window> numpy;                // CPU time before an array, if NumPy ran in it
  std::int64_t calls_ns = 0, numpy_ns = 0;
  SliceId made = kNone<SliceId>, cast = kNone<SliceId>;
  const analysis::TypeRow* type = nullptr;  // of the tensor after the cast
  double largest = 0;
  std::int64_t saved_ns() const { return (calls_ns + numpy_ns) / 2; }
};

// The time from the previous operator or API call to `made`, if a NumPy frame begins in it. Nothing: no such frame is recorded.
std::optional<Window> numpy_before(const Facts& facts, SliceId made) {
  const Trace& trace = *facts.trace;
  bool is_numpy = false;
  for (std::uint32_t i = raw(made); i > trace.track(made).first_slice;) {
    const SliceId slice{--i};
    const CategoryKind kind = trace.kind(slice);
    if (kind == CategoryKind::kPythonFunction) {
      const std::string_view frame = trace.name(slice);
      is_numpy = is_numpy || frame.find("numpy.ndarray object") != frame.npos ||
                 frame.find("numpy/") != frame.npos;
    } else if (kind == CategoryKind::kCpuOp || is_api_call(kind)) {
      const Window code{trace.end_ns(slice), trace.start_ns(made)};
      return is_numpy && code.length_ns() > 0 ? std::optional(code) : std::nullopt;
    }
  }
  return std::nullopt;
}

void find_double_arrays(const Facts& facts, const CallSequence& sequence, DoubleArray& found) {
  const Trace& trace = *facts.trace;
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    if (trace.name(sequence[i]) != "aten::lift_fresh") continue;
    const auto array = operator_inputs(trace, sequence[i]).tensor(0);
    if (!array || !is_double(*array) || array->dense_bytes() < kLeastDoubleBytes) continue;
    std::unordered_set<std::uint32_t> calls;
    const std::size_t last = std::min(sequence.size(), i + 1 + kFurthestCast);
    for (std::size_t next = i + 1; next < last; ++next) {
      const SliceId op = sequence[next];
      const auto taken = operator_inputs(trace, op).tensor(0);
      if (!taken || !is_double(*taken) || taken->elements() != array->elements()) continue;
      if (trace.name(op) == "aten::lift_fresh") break;
      if (is_view(trace.name(op))) continue;
      calls.insert(raw(op));
      const analysis::TypeRow* const type = narrower_type(trace, op);
      if (!type) continue;
      ++found.arrays;
      found.size_bytes += static_cast<std::int64_t>(array->dense_bytes());
      found.calls.insert(calls.begin(), calls.end());
      if (const auto code = numpy_before(facts, sequence[i])) found.numpy.push_back(*code);
      if (array->elements() <= found.largest) break;
      found.largest = array->elements();
      found.made = sequence[i];
      found.cast = op;
      found.type = type;
      break;
    }
  }
}

std::optional<DoubleArray> measure_double_array(const Facts& facts) {
  DoubleArray found;
  for (const CallSequence& sequence : call_sequences(facts))
    find_double_arrays(facts, sequence, found);
  if (found.arrays == 0 || found.arrays < facts.selection.steady.size()) return std::nullopt;
  found.calls_ns = cost_of_calls(facts, found.calls);
  const std::vector<Window> code = joined(std::move(found.numpy));
  if (facts.main_device)
    found.numpy_ns = lost_in(facts, steady_parts(facts, code)).quiet_ns;
  else
    for (const Window& window : code) found.numpy_ns += window.length_ns();
  if (share_of(found.saved_ns(), facts.steady_wall_ns()) < kLeastDoubleArrayShare)
    return std::nullopt;
  return found;
}

Finding tell_double_array(const Facts& facts, const DoubleArray& found) {
  const Value type = text(std::string(found.type->name)),
              size = bytes(facts.per_step(found.size_bytes));
  Finding finding;
  finding.brief = say(
      facts, "{} of float64 [per step] come from NumPy or Python, and are cast to {} afterwards",
      {size, type});
  finding.verdict = finding.brief;
  append(finding.verdict, say(facts, ": the calls up to the cast take {} [per step]",
                              {ns(facts.per_step(found.calls_ns))}));
  if (found.numpy_ns > 0)
    append(finding.verdict,
           say(facts, ", and NumPy's code before them {}", {ns(facts.per_step(found.numpy_ns))}));
  append(finding.verdict, say("."));
  rate_cost(facts, found.saved_ns(), found.arrays, finding);
  finding.arithmetic.push_back(say(
      "counted: half of both, since float32 has half the bytes. NumPy's code: from the operator "
      "before to torch.from_numpy, with a call of NumPy in it, while the GPU waits"));
  finding.evidence.push_back(
      called_at(facts, found.made, say("the largest array becomes a tensor")));
  finding.evidence.push_back(called_at(facts, found.cast, say("it is cast")));
  finding.action =
      say("Compute in float32 (dtype=np.float32, constants too): half the bytes to copy and cast");
  finding.try_next = {
      "NumPy's default is float64, and one array of float64 among the inputs makes the result "
      "float64: give means, scales and constants dtype=np.float32",
      "if the digits are needed until the end of NumPy's work: array.astype(np.float32) before "
      "torch.from_numpy"};
  return finding;
}

}  // namespace

extern constinit const Rule double_array_rule = {
    .id = "double-array",
    .question = "does NumPy hand over float64 that is cast afterwards?",
    .meant_by = "numpy float64 double float32 from_numpy dtype cast",
    .order = 477,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_double_array, tell_double_array>,
};

}  // namespace lanescope::explain::rules
