// A convolution adds a bias that the batch norm after it removes again.
#include <optional>
#include <string>
#include <unordered_set>

#include "lanescope/base/json_value.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;

namespace {

JsonValue argument(const Trace& trace, SliceId op, ArgKey key) {
  const auto text = trace.slice_args(op).text(key);
  return text ? parse_json(trace.text(*text)).value_or(JsonValue{}) : JsonValue{};
}

bool is_convolution(std::string_view name) {
  return name == "aten::conv1d" || name == "aten::conv2d" || name == "aten::conv3d";
}

// The number of output channels if the third input is a bias; else 0.
std::int64_t biased_channels(const Trace& trace, SliceId conv) {
  const JsonValue dims = argument(trace, conv, ArgKey::kInputDims);
  if (dims.items.size() < 3 || dims.items[1].items.size() < 3 || dims.items[2].items.size() != 1)
    return 0;
  const auto channels = dims.items[1].items[0].integer, bias = dims.items[2].items[0].integer;
  return channels && bias && *channels == *bias && *bias > 0 ? *bias : 0;
}

// True: batch norm normalises that many channels by the mean of the batch itself (training).
bool normalises(const Trace& trace, SliceId norm, std::int64_t channels) {
  const JsonValue dims = argument(trace, norm, ArgKey::kInputDims);
  if (dims.items.empty() || dims.items[0].items.size() < 3 ||
      dims.items[0].items[1].integer != channels)
    return false;
  const JsonValue concrete = argument(trace, norm, ArgKey::kConcreteInputs);
  return concrete.items.size() < 6 || concrete.items[5].text != "False";
}

// Convolutions whose next operator on the thread, on the same level, is that batch norm.
std::unordered_set<std::uint32_t> wasted_biases(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::unordered_set<std::uint32_t> convs;
  SliceId conv = kNone<SliceId>;
  std::int64_t channels = 0;
  TrackId track = kNone<TrackId>;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId slice{i};
    if (trace.slices().track[i] != track) {
      track = trace.slices().track[i];
      conv = kNone<SliceId>;
    }
    if (trace.kind(slice) != CategoryKind::kCpuOp) continue;
    if (conv != kNone<SliceId> && trace.start_ns(slice) >= trace.end_ns(conv)) {
      if (trace.name(slice) == "aten::batch_norm" && normalises(trace, slice, channels) &&
          facts.nesting.depth[i] == facts.nesting.depth[raw(conv)])
        convs.insert(raw(conv));
      // Counting batches is not an operation on the result of the convolution.
      if (trace.name(slice) != "aten::add_" || trace.slice_args(slice).empty()) {
        conv = kNone<SliceId>;
      } else {
        const JsonValue dims = argument(trace, slice, ArgKey::kInputDims);
        if (dims.items.empty() || !dims.items[0].items.empty()) conv = kNone<SliceId>;
      }
    }
    if (!is_convolution(trace.name(slice))) continue;
    channels = biased_channels(trace, slice);
    conv = channels > 0 ? slice : kNone<SliceId>;
  }
  return convs;
}

struct BiasKernels {
  Savings kernels;
  std::uint64_t backward = 0;  // kernels that sum the gradient of a bias
};

std::optional<BiasKernels> measure_conv_bias(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto convs = wasted_biases(facts);
  if (convs.empty()) return std::nullopt;
  const auto is_wasted = [&](SliceId op) {
    for (int i = 0; i < 8 && op != kNone<SliceId>; ++i) {
      if (convs.contains(raw(op))) return true;
      op = facts.nesting.parent[raw(op)];
    }
    return false;
  };
  Savings kernels;
  std::uint64_t backward = 0;
  for (const DeviceWork& work : facts.device().timeline.work) {
    const SliceId op = facts.links.op_of[raw(work.slice)];
    if (work.work != analysis::WorkClass::kCompute || op == kNone<SliceId> ||
        !inside(facts.steady_windows, work.start_ns))
      continue;
    const std::string_view label = trace.name(op);
    if (label == "aten::add_" && is_wasted(op)) {
      kernels.add(work.slice, work.start_ns, work.end_ns, work.end_ns - work.start_ns);
    } else if (label == "aten::sum" || label == "aten::sum_out") {
      // The bias's gradient: a sum inside the backward operator of such a convolution.
      SliceId node = find_around(facts, op, "ConvolutionBackward0");
      const SliceId forward = node == kNone<SliceId> ? node : facts.links.forward_of[raw(node)];
      if (forward == kNone<SliceId> || !is_wasted(forward)) continue;
      kernels.add(work.slice, work.start_ns, work.end_ns, work.end_ns - work.start_ns);
      ++backward;
    }
  }
  kernels.finish();
  if (kernels.calls() == 0 || wall_share(facts, kernels.time_ns()) < 0.01) return std::nullopt;
  return BiasKernels{.kernels = std::move(kernels), .backward = backward};
}

Finding tell_conv_bias(const Facts& facts, const BiasKernels& found) {
  Finding finding;
  finding.verdict =
      say(facts,
          "Biases of convolutions are added and then taken away by batch norm: {} "
          "[kernel|kernels], {} [per step].",
          {count(found.kernels.calls()), ns(facts.per_step(found.kernels.time_ns()))});
  finding.arithmetic.push_back(
      say(facts, "{} [kernel adds|kernels add] the bias, {} [sums|sum] its gradient",
          {count(found.kernels.calls() - found.backward), count(found.backward)}));
  rate_finding(facts, found.kernels, finding);
  finding.evidence.push_back(longest_of(facts, found.kernels.longest()));
  finding.try_next = {
      "set bias=False in a convolution that a batch norm follows: the batch norm subtracts the "
      "bias with the mean"};
  finding.brief = say("Batch norm removes the bias that the convolution before it adds");
  finding.action = say("Set bias=False in a convolution that a batch norm follows");
  return finding;
}

}  // namespace

extern constinit const Rule conv_bias_rule = {
    .id = "conv-bias",
    .question = "is a convolution's bias added only for batch norm to remove it?",
    .order = 620,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .only_if = kernels_matter,
    .then_needs = {need::kShapes},
    .run = measure_and_tell<measure_conv_bias, tell_conv_bias>,
    .is_regression = true,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
