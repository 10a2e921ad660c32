// Matrix kernels whose last wave of blocks leaves much of the GPU empty.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct WaveTail {
  Savings found;
  const KernelCall* longest = nullptr;
  std::optional<analysis::LaunchShape> longest_shape;
};

Measurement<WaveTail> measure_wave_tail(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  Savings found;
  const KernelCall* longest = nullptr;
  std::optional<analysis::LaunchShape> longest_shape;
  bool has_shape = false, has_matrix = false;
  for (const KernelCall& kernel : kernels.kernels) {
    // Only kernels with few, long blocks run in waves; elementwise blocks start one after another.
    if (!kernel.is_gemm() && !kernel.is_convolution() && !kernel.is_attention()) continue;
    if (kernel.call && kernel.call->kernel != kernel.slice) continue;
    const auto shape = kernels.shape(*facts.trace, kernel);
    has_matrix = true;
    if (!shape) continue;
    has_shape = true;
    if (shape->slots == 0 || kernel.dur_ns() < 10'000 || !kernel.is_alone) continue;
    if (shape->waves() <= 1 || shape->wave_efficiency() >= 0.8) continue;
    const auto dur = static_cast<double>(kernel.dur_ns());
    found.add(kernel, std::llround(dur * (1 - shape->wave_efficiency())));
    if (!longest || kernel.dur_ns() > longest->dur_ns()) {
      longest = &kernel;
      longest_shape = shape;
    }
  }
  if (has_matrix && !has_shape) return NotChecked{kNeedsGrids};
  found.finish();
  if (!longest || wall_share(facts, found.time_ns()) < 0.02 ||
      wall_share(facts, found.saved_ns()) < 0.01)
    return Quiet{};
  return WaveTail{std::move(found), longest, std::move(longest_shape)};
}

Finding tell_wave_tail(const Facts& facts, const WaveTail& measured) {
  const auto& [found, longest, longest_shape] = measured;
  Finding finding;
  finding.verdict = say(facts,
                        "The last wave of blocks leaves the GPU partly empty: {} matrix "
                        "[kernel|kernels], {} [per step].",
                        {count(found.calls()), ns(facts.per_step(found.time_ns()))});
  const auto whole = [](std::int64_t value) { return count(static_cast<std::uint64_t>(value)); };
  const Value things = text(longest_shape->is_persistent ? "tiles" : "blocks");
  const Value waves = text(fmt::format("{:.2f}", longest_shape->waves()));
  const Value used = ratio(std::llround(longest_shape->wave_efficiency() * 1000), 1000);
  finding.arithmetic.push_back(
      say(facts, "the longest: {} {} on {} [place|places] = {} waves",
          {whole(longest_shape->items), things, whole(longest_shape->slots), waves}));
  const std::int64_t sms = longest_shape->sm_count;
  if (longest_shape->is_persistent || longest_shape->slots <= sms)
    finding.arithmetic.push_back(say("these waves fill {} of their places", {used}));
  else  // what counts is how many the fullest one gets
    finding.arithmetic.push_back(
        say("several share a multiprocessor: the fullest gets {}, the mean is {}, so the GPU is "
            "filled to {}",
            {whole((longest_shape->items + sms - 1) / sms),
             text(fmt::format(
                 "{:.2f}", static_cast<double>(longest_shape->items) / static_cast<double>(sms))),
             used}));
  if (longest_shape->is_persistent)
    finding.arithmetic.push_back(
        say(facts, "its {} [block stays and takes|blocks stay and take] one tile after the other",
            {whole(longest_shape->blocks)}));
  rate_finding(facts, found, finding);
  finding.evidence.push_back(
      {longest->slice, say("the longest, {}", {kernel(facts.trace->name(longest->slice))})});
  finding.try_next = {"pick a batch or size whose tiles just fill whole waves",
                      "use torch.compile(mode=\"max-autotune\"), which tries other tiles"};
  finding.action = say("Pick a batch whose tiles fill whole waves, or use mode=\"max-autotune\"");
  finding.brief = say("The last wave of blocks leaves the GPU partly empty");
  return finding;
}

}  // namespace

extern constinit const Rule wave_tail_rule = {
    .id = "wave-tail",
    .question = "does the last wave of blocks leave the GPU partly empty?",
    .order = 550,
    .needs = {need::kGpuWork},
    .only_if = kernels_decide,
    .then_needs = {need::kMultiprocessors},
    .run = measure_and_tell<measure_wave_tail, tell_wave_tail>,
    .fix = Fix::kGpu,
    .keeps_kernels = true,
};

}  // namespace lanescope::explain::rules
