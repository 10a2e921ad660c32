// Fused attention over long sequences that reaches less than 40 % of the GPU's peak.
#include <cmath>
#include <optional>
#include <utility>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

// The library of the kernel, by its name and its operator.
enum class AttentionBackend : std::uint8_t { kOther, kCudnn, kFlash3 };
AttentionBackend backend_of(const Facts& facts, const KernelCall& kernel) {
  const std::string_view label = facts.trace->name(kernel.slice);
  const auto has = [&](std::string_view word) { return label.find(word) != label.npos; };
  if (has("cudnn") ||
      find_around(facts, kernel.op, "aten::_scaled_dot_product_cudnn_attention") !=
          kNone<SliceId> ||
      find_around(facts, kernel.op, "aten::_cudnn_attention_forward") != kNone<SliceId>)
    return AttentionBackend::kCudnn;
  // FlashAttention 3 is written with CUTLASS's classes for sm90.
  if (has("flash") && has("Sm90")) return AttentionBackend::kFlash3;
  return AttentionBackend::kOther;
}

// True: the call gets a mask of numbers or flags of query length x key length, and both lengths are
// equal. A causal mask is such a mask.
bool has_square_mask(const Facts& facts, SliceId op) {
  const SliceId call = find_around(facts, op, "aten::scaled_dot_product_attention");
  if (call == kNone<SliceId>) return false;
  const auto inputs = operator_inputs(*facts.trace, call);
  const auto query = inputs.tensor(0), key = inputs.tensor(1), mask = inputs.tensor(3);
  if (!query || !key || !mask || query->rank() < 3 || key->rank() < 3 || mask->rank() < 2)
    return false;
  return mask->dim(1) == mask->dim(0) && mask->dim(1) == query->dim(1) &&
         mask->dim(0) == key->dim(1) && mask->dim(0) > 1;
}

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

// The backends that the program does not use yet and that this GPU has.
void add_attention_advice(const Facts& facts, const KernelCall& longest, Finding& finding) {
  const AttentionBackend used = backend_of(facts, longest);
  const auto& device = kernel_facts(facts).roofline.device;
  const bool is_nvidia = device.compute_major.has_value();
  const bool is_hopper = device.compute_major == 9;
  if (is_nvidia && longest.work->type == "f32") {
    finding.try_next.push_back(
        "run the attention in bfloat16 or float16: FlashAttention and cuDNN's attention use the "
        "tensor cores, and take no float32");
    finding.action = say("Run attention in bfloat16 or float16: the fast kernels take no float32");
  } else if (is_nvidia && used == AttentionBackend::kOther) {
    finding.try_next.push_back(
        is_hopper ? "try another backend: torch.nn.attention.sdpa_kernel with CUDNN_ATTENTION, or "
                    "FlashAttention 3"
                  : "try another backend: torch.nn.attention.sdpa_kernel with CUDNN_ATTENTION");
    finding.action = is_hopper ? say("Try sdpa_kernel(CUDNN_ATTENTION) or FlashAttention 3")
                               : say("Try sdpa_kernel(CUDNN_ATTENTION)");
  } else if (is_hopper && used == AttentionBackend::kCudnn) {
    finding.try_next.push_back("cuDNN's attention is in use already; try FlashAttention 3");
    finding.action = say("cuDNN's attention is in use already; try FlashAttention 3");
  } else {
    finding.try_next.push_back(
        "give each call more work: more heads, samples or queries; a fused backend is in use "
        "already");
    finding.action = say("Give each attention call more work: a larger batch or longer sequences");
  }
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
  const bool is_masked = has_square_mask(facts, longest->op);
  if (is_masked) {
    finding.try_next = {
        "if the mask is the causal one, pass is_causal=True and no attn_mask: half of "
        "the scores are not computed then, and FlashAttention applies, which takes no "
        "mask",
        "for other patterns use torch.nn.attention.flex_attention, which skips blocks "
        "that the mask empties"};
    finding.action = say(
        "A causal mask: is_causal=True instead. A window or blocks: flex_attention, which skips "
        "the rest");
  } else {
    add_attention_advice(facts, *longest, finding);
  }
  // Where it runs in float32, both say so.
  for (const char* covered : {"no-roof", "costly-operator"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = is_masked ? say("Attention with a mask runs far below the GPU's peak")
                            : say("Fused attention runs far below the GPU's peak");
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
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
