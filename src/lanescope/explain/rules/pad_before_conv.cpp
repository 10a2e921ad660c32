// A separate operator adds zeros around an image, before a convolution that has a padding argument.
#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "lanescope/explain/rules/calls_with_work.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;
using analysis::TensorArguments;

namespace {

constexpr double kLeastPadBeforeConvShare = 0.03;

bool is_convolution_call(std::string_view op) {
  return op == "aten::conv1d" || op == "aten::conv2d" || op == "aten::conv3d" ||
         op == "aten::convolution";
}

// The operator that pads with a constant: the call itself or one inside; kNone: another padding.
SliceId constant_pad(const Trace& trace, SliceId call) {
  if (trace.name(call) == "aten::constant_pad_nd") return call;
  if (trace.name(call) != "aten::pad") return kNone<SliceId>;
  const Track& track = trace.track(call);
  for (std::uint32_t i = raw(call) + 1; i < track.first_slice + track.slice_count; ++i) {
    const SliceId inner{i};
    if (trace.start_ns(inner) >= trace.end_ns(call)) break;
    if (trace.name(inner) == "aten::constant_pad_nd") return inner;
  }
  return kNone<SliceId>;
}

// The shape after padding with zeros, equally on both sides and only in spatial dimensions. [from
// the last dimension: before, after, ...]. Nothing: a convolution's argument cannot do it.
std::optional<Sizes> padded_shape(const TensorArguments& inputs) {
  const auto image = inputs.tensor(0);
  const auto with = inputs.number(2);
  if (!image || image->rank() < 3 || !with || *with != 0) return std::nullopt;
  Sizes shape = image->dims;
  for (std::size_t spatial = 1; spatial + 2 <= image->rank(); ++spatial) {
    const auto pads = inputs.list(1, 2 * spatial);
    if (!pads) continue;
    for (std::size_t i = 0; i < spatial; ++i) {
      const std::int64_t before = (*pads)[2 * i], after = (*pads)[2 * i + 1];
      if (before != after || before < 0) return std::nullopt;
      shape[shape.size() - 1 - i] += before + after;
    }
    return shape;
  }
  return std::nullopt;
}

struct Pads {
  Savings work;
  std::uint64_t pads = 0;
  SliceId longest = kNone<SliceId>;  // aten::pad
};

std::optional<Pads> measure_pad_before_conv(const Facts& facts) {
  const Trace& trace = *facts.trace;
  Pads found;
  std::unordered_set<std::uint32_t> calls;
  for (const CallSequence& sequence : call_sequences(facts))
    for (std::size_t i = 0; i + 1 < sequence.size(); ++i) {
      if (!is_convolution_call(trace.name(sequence[i + 1]))) continue;
      const SliceId pad = constant_pad(trace, sequence[i]);
      if (pad == kNone<SliceId>) continue;
      const auto shape = padded_shape(operator_inputs(trace, pad));
      const auto image = operator_inputs(trace, sequence[i + 1]).tensor(0);
      if (!shape || !image || image->dims != *shape) continue;
      ++found.pads;
      calls.insert(raw(sequence[i]));
      if (found.longest == kNone<SliceId> ||
          trace.dur_ns(sequence[i]) > trace.dur_ns(found.longest))
        found.longest = sequence[i];
    }
  if (calls.empty()) return std::nullopt;
  found.work = work_in_calls(facts, calls);
  if (wall_share(facts, found.work.saved_ns()) < kLeastPadBeforeConvShare) return std::nullopt;
  return found;
}

Finding tell_pad_before_conv(const Facts& facts, const Pads& found) {
  Finding finding;
  finding.verdict = say(
      facts,
      "Before {} [convolution|convolutions] [per step], aten::pad copies the image into a larger "
      "one with zeros around it: {} of GPU time [per step].",
      {count(found.pads / facts.selection.steady.size()),
       ns(facts.per_step(found.work.time_ns()))});
  rate_calls(facts, found.work, finding);
  finding.arithmetic.push_back(
      say("counted: padding with zeros, as much before as after, of which the next call is a "
          "convolution of the padded shape"));
  finding.evidence.push_back(called_at(facts, found.longest, say("the longest of these calls")));
  finding.try_next = {
      "give the convolution its padding argument, and leave out F.pad, if nothing else reads the "
      "padded image: the kernel then reads zeros where the image ends"};
  for (const char* covered : {"hotspot-kernel", "layout-copies"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say(facts, "Images are padded by copies before {} [convolution|convolutions]",
                      {count(found.pads / facts.selection.steady.size())});
  finding.action = say("Use the convolution's padding argument instead of F.pad or ZeroPad2d");
  return finding;
}

}  // namespace

extern constinit const Rule pad_before_conv_rule = {
    .id = "pad-before-conv",
    .question = "are images padded before a convolution that could pad them itself?",
    .meant_by = "pad padding convolution zeropad",
    .order = 497,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .only_if = kernels_matter,
    .then_needs = {need::kShapes},
    .run = measure_and_tell<measure_pad_before_conv, tell_pad_before_conv>,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
