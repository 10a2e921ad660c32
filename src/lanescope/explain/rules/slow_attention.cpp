// Fused attention over long sequences that reaches less than 40 % of the GPU's peak.
#include <cmath>
#include <optional>
#include <utility>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct SlowAttention {
  Savings found;
  const KernelCall* longest = nullptr;
  double flops = 0;
  std::int64_t time_ns = 0;
};

std::optional<SlowAttention> measure_slow_attention(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  Savings found;
  const KernelCall* longest = nullptr;
  double flops = 0;
  std::int64_t time_ns = 0;
  for (const KernelCall& kernel : kernels.kernels) {
    if (!kernel.is_attention() || !is_large_and_slow(kernel)) continue;
    const auto& call = *kernel.call;
    // The call's helpers (a sum of dO O, a conversion of dQ) count as its time.
    found.add(kernel.slice, call.start_ns, call.end_ns,
              call.time_ns - std::llround(call.floor_ns()));
    flops += kernel.work->flops;
    time_ns += call.time_ns;
    if (!longest || call.time_ns > longest->call->time_ns) longest = &kernel;
  }
  found.finish();
  if (!longest || wall_share(facts, found.time_ns()) < 0.05) return std::nullopt;
  return SlowAttention{std::move(found), longest, flops, time_ns};
}

Finding tell_slow_attention(const Facts& facts, const SlowAttention& measured) {
  const auto& [found, longest, flops, time_ns] = measured;
  Finding finding;
  finding.verdict = say(facts,
                        "Fused attention is far below the peak: {} [call|calls] of 1 GFLOP and "
                        "more [reaches|reach] less than 40 % of it, {} [per step].",
                        {count(found.calls()), ns(facts.per_step(found.time_ns()))});
  finding.arithmetic.push_back(say(
      "together {} TFLOP/s; the longest, {} in {}, reached {} of the peak",
      {count(static_cast<std::uint64_t>(std::llround(flops / static_cast<double>(time_ns) / 1e3))),
       text(longest->work->is_attention_backward ? "a backward pass" : "a forward pass"),
       name(longest->work->type),
       ratio(std::llround(longest->call->achieved_ratio() * 1000), 1000)}));
  rate_finding(facts, found, finding);
  finding.evidence.push_back(
      {longest->slice, say("the longest, {}", {kernel(facts.trace->name(longest->slice))})});
  finding.try_next = {
      "try another backend: torch.nn.attention.sdpa_kernel with CUDNN_ATTENTION, or FlashAttention "
      "3 on Hopper",
      "use a head size of 64 or 128, and is_causal=True instead of a dense causal mask"};
  finding.explains.push_back({"no-roof", finding.at_stake_ns});
  finding.action = say("Try sdpa_kernel(CUDNN_ATTENTION) or FlashAttention 3; head size 64 or 128");
  finding.brief = say("Fused attention runs far below the GPU's peak");
  return finding;
}

}  // namespace

extern constinit const Rule slow_attention_rule = {
    .id = "slow-attention",
    .question = "is fused attention far below the GPU's peak?",
    .order = 530,
    .needs = {need::kGpuWork},
    .only_if = kernels_decide,
    .then_needs = {need::kShapes, need::kPeakRates},
    .run = measure_and_tell<measure_slow_attention, tell_slow_attention>,
};

}  // namespace lanescope::explain::rules
