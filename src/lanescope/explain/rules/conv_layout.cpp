// cuDNN turns tensors from channels-first to channels-last and back around its kernels.
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/plurals.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

Outcome check_conv_layout(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  Savings found;
  std::uint64_t forward = 0, convolutions = 0;
  for (const KernelCall& kernel : kernels.kernels) {
    const std::string_view label = facts.trace->name(kernel.slice);
    const auto has = [&](std::string_view word) {
      return label.find(word) != std::string_view::npos;
    };
    const bool to_last = has("nchwToNhwc") || has("nchwAddPaddingKernel") || has("ncdhwToNdhwc");
    const bool to_first = has("nhwcToNchw") || has("nhwcAddPaddingKernel") || has("ndhwcToNcdhw") ||
                          has("nhwcToFoldedNhwc");
    if (!to_last && !to_first) {
      convolutions += kernel.is_convolution() ? 1 : 0;
      continue;
    }
    found.add(kernel, kernel.dur_ns());
    forward += to_last ? 1 : 0;
  }
  found.finish();
  if (found.calls() == 0 || wall_share(facts, found.saved_ns()) < 0.02) return Quiet{};
  Finding finding;
  finding.verdict = say_counted(
      facts,
      "Convolutions shuffle their tensors between layouts: {} [kernel|kernels], {} of a step's {}.",
      {count(found.calls()), ns(facts.per_step(found.time_ns())),
       ns(facts.per_step(facts.wall.partition.wall_ns))});
  finding.arithmetic.push_back(
      say_counted(facts, "{} to channels-last, {} back, around {} convolution [kernel|kernels]",
                  {count(forward), count(found.calls() - forward), count(convolutions)}));
  rate_finding(facts, found, finding);
  finding.evidence.push_back(longest_of(facts, found.longest()));
  finding.try_next = {"model.to(memory_format=torch.channels_last), and the input too"};
  finding.explains.push_back({"no-roof", finding.at_stake_ns});
  finding.brief =
      say("Convolutions convert their tensors between layouts: {} kernels", {count(found.calls())});
  return finding;
}

}  // namespace

extern constinit const Rule conv_layout_rule = {
    .id = "conv-layout",
    .question = "do convolutions shuffle their tensors between layouts?",
    .order = 610,
    .needs = {need::kGpuWork},
    .only_if = kernels_matter,
    .run = check_conv_layout,
};

}  // namespace lanescope::explain::rules
