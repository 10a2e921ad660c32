// cuDNN converts tensors from channels-first to channels-last before its kernels, and back after them.
#include <algorithm>
#include <optional>
#include <vector>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct LayoutKernels {
  Savings conversions;
  std::uint64_t to_last_count = 0;  // conversions to channels-last
  std::uint64_t convolutions = 0;
  bool are_of_volumes = false;  // only of conv3d: the layout has another name there
};

// Transforms of the last dimensions want channels first: with channels_last the conversions would only move from the convolutions
// to them. True: a step has as many transforms, in the forward and the backward pass, as forward convolutions.
bool has_transforms_beside(const Facts& facts) {
  const auto windows = facts.steady_cpu_windows();
  const auto in_steps = [&](const std::vector<SliceId>& slices) {
    return std::count_if(slices.begin(), slices.end(), [&](SliceId slice) {
      return facts.trace->kind(slice) == CategoryKind::kCpuOp &&
             inside(windows, facts.trace->start_ns(slice));
    });
  };
  const auto transforms = in_steps(slices_starting_with(facts, "aten::_fft_"));
  return transforms > 0 && transforms >= in_steps(slices_named(facts, "aten::convolution"));
}

std::optional<LayoutKernels> measure_conv_layout(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  Savings conversions;
  std::uint64_t to_last_count = 0, convolutions = 0, of_volumes = 0, of_pictures = 0;
  for (const KernelCall& kernel : kernels.kernels) {
    const std::string_view label = facts.trace->name(kernel.slice);
    const auto has = [&](std::string_view word) {
      return label.find(word) != std::string_view::npos;
    };
    const bool to_last = has("nchwToNhwc") || has("ncdhwToNdhwc");
    // nhwcAddPaddingKernel and nhwcToFoldedNhwc pad or fold channels; the layout stays.
    const bool to_first = has("nhwcToNchw") || has("ndhwcToNcdhw");
    if (!to_last && !to_first) {
      convolutions += kernel.is_convolution() ? 1 : 0;
      continue;
    }
    conversions.add(kernel, kernel.dur_ns());
    to_last_count += to_last ? 1 : 0;
    const SliceId launch = facts.links.launch_of[raw(kernel.slice)];
    if (launch == kNone<SliceId>) continue;
    if (ancestor_named(facts, launch, "aten::conv3d") != kNone<SliceId>) ++of_volumes;
    if (ancestor_named(facts, launch, "aten::conv2d") != kNone<SliceId>) ++of_pictures;
  }
  conversions.finish();
  if (conversions.calls() == 0 || wall_share(facts, conversions.saved_ns()) < 0.02 ||
      has_transforms_beside(facts))
    return std::nullopt;
  return LayoutKernels{.conversions = std::move(conversions),
                       .to_last_count = to_last_count,
                       .convolutions = convolutions,
                       .are_of_volumes = of_volumes > 0 && of_pictures == 0};
}

Finding tell_conv_layout(const Facts& facts, const LayoutKernels& found) {
  Finding finding;
  finding.verdict =
      say(facts,
          "Convolutions convert their tensors between memory layouts: {} [kernel|kernels] [in {} "
          "steps], {} of [a step's] {}.",
          {count(found.conversions.calls()), count(facts.selection.steady.size()),
           ns(facts.per_step(found.conversions.time_ns())),
           ns(facts.per_step(facts.wall.partition.wall_ns))});
  finding.arithmetic.push_back(say(
      facts, "in all steps: {} to channels-last, {} back, around {} convolution [kernel|kernels]",
      {count(found.to_last_count), count(found.conversions.calls() - found.to_last_count),
       count(found.convolutions)}));
  rate_finding(facts, found.conversions, finding);
  finding.evidence.push_back(longest_of(facts, found.conversions.longest()));
  finding.try_next = {found.are_of_volumes ? "use channels_last_3d for the model and its input: "
                                             ".to(memory_format=torch.channels_last_3d)"
                                           : "use channels_last for the model and its input: "
                                             ".to(memory_format=torch.channels_last)"};
  finding.explains.push_back({"no-roof", finding.at_stake_ns});
  finding.brief =
      say(facts,
          "Convolutions convert their tensors between layouts: {} [kernel|kernels] [in {} steps]",
          {count(found.conversions.calls()), count(facts.selection.steady.size())});
  return finding;
}

}  // namespace

extern constinit const Rule conv_layout_rule = {
    .id = "conv-layout",
    .question = "do convolutions convert their tensors between memory layouts?",
    .meant_by = "channelslast",
    .order = 610,
    .needs = {need::kGpuWork},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_conv_layout, tell_conv_layout>,
    .is_regression = true,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
