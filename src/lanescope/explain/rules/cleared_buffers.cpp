// Large buffers are filled with zeros, but only slices of them are written and read. Example: a cache with room for long answers.
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
#include "lanescope/explain/rules/tensor_sizes.h"

namespace lanescope::explain::rules {

using analysis::Sizes;
using analysis::Tensor;
using analysis::TensorArguments;

namespace {

constexpr double kLeastClearedShare = 0.04;
constexpr double kMostOfBufferUsed = 0.5;
constexpr double kLeastClearedBytes = 1 << 20;
constexpr std::size_t kMostClearInputs = 8;  // of a call that are looked at

// The fill inside of zeros(), new_zeros() or full(), or zero_() itself: the tensor that it clears.
struct ClearedTensor {
  SliceId fill = kNone<SliceId>;
  Tensor tensor;
};
std::optional<ClearedTensor> cleared_by(const Trace& trace, SliceId op) {
  const std::string_view label = trace.name(op);
  const bool is_maker = label == "aten::zeros" || label == "aten::new_zeros" ||
                        label == "aten::zeros_like" || label == "aten::full" ||
                        label == "aten::new_full";
  const Track& track = trace.track(op);
  const auto end = is_maker ? track.first_slice + track.slice_count : raw(op) + 1;
  if (!is_maker && label != "aten::zero_") return std::nullopt;
  for (std::uint32_t i = raw(op); i < end && trace.start_ns(SliceId{i}) < trace.end_ns(op); ++i) {
    const std::string_view inner = trace.name(SliceId{i});
    if (inner != "aten::zero_" && inner != "aten::fill_") continue;
    if (auto tensor = operator_inputs(trace, SliceId{i}).tensor(0))
      return ClearedTensor{SliceId{i}, *std::move(tensor)};
  }
  return std::nullopt;
}

struct ClearedSize {
  std::uint64_t fills = 0;
  double bytes = 0;  // of one
  std::vector<SliceId> calls;
  std::vector<SliceId> spared;  // the fills themselves
  double used = 0;              // the largest part that a slice keeps
  Sizes cut;                    // of the first slice
  bool is_written = false;      // the first that takes a slice copies into it
  bool is_whole = false;        // something takes all of it
};

// Follows the buffers of each size through the calls of one step.
class BufferUses {
 public:
  BufferUses(const Trace& trace, std::map<Sizes, ClearedSize>& sizes)
      : trace_(trace), sizes_(sizes) {}

  void visit(SliceId op) {
    if (const auto cleared = cleared_by(trace_, op)) {
      add(op, *cleared);
      return;
    }
    if (sizes_.empty()) return;  // nothing was filled yet
    const TensorArguments inputs = operator_inputs(trace_, op);
    for (std::size_t k = 0; k < kMostClearInputs; ++k)
      if (const auto tensor = inputs.tensor(k)) take(op, inputs, k, *tensor);
    const auto listed = first_input_shapes(trace_, op);
    if (listed.size() < 2) return;
    for (const Sizes& each : listed)
      if (const auto found = sizes_.find(each); found != sizes_.end())
        found->second.is_whole = true;
  }

 private:
  void add(SliceId op, const ClearedTensor& cleared) {
    if (cleared.tensor.dense_bytes() < kLeastClearedBytes) return;
    ClearedSize& size = sizes_[cleared.tensor.dims];
    ++size.fills;
    size.bytes = cleared.tensor.dense_bytes();
    size.calls.push_back(op);
    size.spared.push_back(cleared.fill);
  }

  void take(SliceId op, const TensorArguments& inputs, std::size_t k, const Tensor& tensor) {
    const std::string_view label = trace_.name(op);
    for (auto& [dims, size] : sizes_) {
      if (!size.cut.empty() && tensor.dims == size.cut && !size.is_written && !is_view(label)) {
        size.is_written = k == 0 && label == "aten::copy_";
        size.is_whole = size.is_whole || !size.is_written;
      }
      if (tensor.dims != dims) continue;
      const auto taken =
          k == 0 && (label == "aten::slice" || label == "aten::select" || label == "aten::narrow")
              ? taken_of(label, inputs, 0)
              : std::nullopt;
      if (!taken) {
        size.is_whole = true;
        continue;
      }
      const double part = taken->elements / std::max(1.0, tensor.elements());
      if (part >= 1) continue;  // x[:, :] is a view of all of it: what takes the view decides
      size.used = std::max(size.used, part);
      if (size.cut.empty()) size.cut = size_cut(label, inputs, tensor, part);
    }
  }

  static Sizes size_cut(std::string_view label, const TensorArguments& inputs, const Tensor& tensor,
                        double part) {
    Sizes cut = tensor.dims;
    const auto dim = inputs.value(1);
    std::int64_t at = dim && dim->integer ? *dim->integer : 0;
    if (at < 0) at += static_cast<std::int64_t>(cut.size());
    if (at < 0 || at >= static_cast<std::int64_t>(cut.size())) return {};
    if (label == "aten::select")
      cut.erase(cut.begin() + at);
    else
      cut[static_cast<std::size_t>(at)] = static_cast<std::int64_t>(
          part * static_cast<double>(cut[static_cast<std::size_t>(at)]) + 0.5);
    return cut;
  }

  const Trace& trace_;
  std::map<Sizes, ClearedSize>& sizes_;
};

struct ClearedBuffers {
  ClearedSize size;
  Sizes dims;
  std::int64_t cost_ns = 0;
};

std::optional<ClearedBuffers> measure_cleared_buffers(const Facts& facts) {
  std::map<Sizes, ClearedSize> sizes;
  for (const CallSequence& calls : call_sequences(facts)) {
    BufferUses uses(*facts.trace, sizes);
    for (const SliceId call : calls)
      if (!facts.trace->name(call).starts_with(kEvaluateNode)) uses.visit(call);
  }
  ClearedBuffers found;
  for (const auto& [dims, size] : sizes) {
    if (size.is_whole || !size.is_written || size.used > kMostOfBufferUsed ||
        size.fills < facts.selection.steady.size())
      continue;
    std::unordered_set<std::uint32_t> fills;
    for (const SliceId fill : size.spared) fills.insert(raw(fill));
    const std::int64_t cost_ns = cost_of_calls(facts, fills);
    if (cost_ns <= found.cost_ns) continue;
    found = {size, dims, cost_ns};
  }
  if (found.cost_ns == 0 || share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastClearedShare)
    return std::nullopt;
  return found;
}

Finding tell_cleared_buffers(const Facts& facts, const ClearedBuffers& found) {
  const std::uint64_t fills = found.size.fills / step_count(facts);
  const Value maker = name(facts.trace->name(found.size.calls.front())),
              all = bytes(static_cast<std::int64_t>(found.size.bytes * static_cast<double>(fills))),
              used = ratio(static_cast<std::int64_t>(found.size.used * 1e6), 1'000'000);
  Finding finding;
  finding.verdict =
      say(facts,
          "{} fills {} [buffer|buffers] of {} [per step], {} in all, and then only slices of them "
          "are written and read, the largest {} of a buffer. The fills take {} [per step] ({}).",
          {maker, count(fills), text(analysis::shape_text(found.dims)), all, used,
           ns(facts.per_step(found.cost_ns)), ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.size.fills, finding);
  finding.sample_noun = "fill";
  finding.spared_calls = found.size.spared;
  finding.arithmetic.push_back(
      say("counted: the fills of buffers of this size. Operators of these steps take only slices "
          "of such a tensor, and the first that takes a slice is aten::copy_, which writes it"));
  finding.evidence.push_back(called_at(facts, found.size.calls.front(), say("one of these fills")));
  finding.try_next = {
      "use torch.empty instead of torch.zeros, if the program reads only what it wrote before",
      "keep the buffers and use them again, or make them only as long as needed"};
  for (const char* covered : {"hotspot-kernel", "memory-roof", "no-roof"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say(facts, "{} fills {} of buffers, of which only slices ({}) are used", {maker, all, used});
  finding.action = say("Use torch.empty; or keep the buffers, or make them only as long as needed");
  return finding;
}

}  // namespace

extern constinit const Rule cleared_buffers_rule = {
    .id = "cleared-buffers",
    .question = "are large buffers filled with zeros that nothing reads?",
    .meant_by = "zeros fill clear cache kv buffer memset empty",
    .order = 453,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_cleared_buffers, tell_cleared_buffers>,
};

}  // namespace lanescope::explain::rules
