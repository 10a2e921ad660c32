// Fused attention over long sequences reaches less than 40 % of the GPU's peak, and less than a known kernel reaches.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/attention_mask.h"
#include "lanescope/explain/rules/attention_rates.h"
#include "lanescope/explain/rules/batch_advice.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

// A call counts only if it takes at least this many times its shortest possible time. Rates differ as much between GPUs, and
// between the measured lengths.
constexpr double kLeastLead = 1.15;

// Queries with more elements fill the GPU: from 131,072 to 524,288 positions of 64 elements, the rates grow by 2 to 18 % only.
constexpr double kManyElements = 131'072 * 64;

// The library of the kernel, found by the names of the kernel and of the operators around it.
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

// True: the call gets a mask tensor of query length x key length, and both lengths are equal. A
// causal mask has this shape.
bool has_square_mask(const Facts& facts, const KernelCall& kernel) {
  const SliceId call = find_around(facts, kernel.op, "aten::scaled_dot_product_attention");
  return masked_length(*facts.trace, call == kNone<SliceId> ? kernel.call->op : call) > 0;
}

// Problem: a fused attention kernel spends most of its time on exponentials where heads are small, and a causal mask cuts half of its
// blocks, so no kernel comes near the peak. Idea: compare the call with the rate that torch's fastest kernel reached for such a call
// (attention_rates.h).
struct Attainable {
  double ratio = 0;       // of the peak, 0 to 1
  bool is_above = false;  // the call is smaller than what was measured, so it reaches less
};

// What the table gives for this head size, mask, direction, length and number of positions. Nothing: the table has no row
// for this GPU, type or head size; queries and keys differ in length; or both are shorter than any measured length.
std::optional<Attainable> attainable(const Facts& facts, const KernelCall& kernel) {
  const GpuDevice& device = kernel_facts(facts).roofline.device;
  const analysis::OperatorWork& work = *kernel.work;
  if (device.compute_major != 9 || device.is_mig.value_or(false) ||
      (work.type != "bf16" && work.type != "f16"))
    return std::nullopt;
  // The first input of a backward operator is the gradient; the query is the second.
  const std::size_t first = work.is_attention_backward ? 1 : 0;
  const auto inputs = operator_inputs(*facts.trace, kernel.call->op);
  const auto query = inputs.tensor(first), key = inputs.tensor(first + 1);
  if (!query || !key || query->rank() != 4 || key->rank() != 4 || query->dim(1) != key->dim(1))
    return std::nullopt;
  // Over all pairs of query and key, the forward pass computes two products, the backward pass five. A causal mask leaves half of
  // the pairs.
  const double of_all_pairs = (work.is_attention_backward ? 10.0 : 4.0) * query->elements() *
                              static_cast<double>(key->dim(1));
  const bool is_causal = work.flops * 4 < of_all_pairs * 3;
  const std::int64_t head_size = query->dim(0);
  if (head_size <= 0) return std::nullopt;
  const FoundRate found =
      find_attention_rate(head_size, is_causal, query->dim(1),
                          static_cast<std::int64_t>(std::min(query->elements(), 1e15)) / head_size);
  if (!found.row) return std::nullopt;
  const std::int64_t rate = work.is_attention_backward ? found.row->backward : found.row->forward;
  return Attainable{static_cast<double>(rate) / kPeakOfRates, found.is_above};
}

// The shortest possible time of a call, in ns: its operations at the best measured rate, or at the GPU's peak where no rate was
// measured. Nothing: the call already uses the fastest kernels, and their best rate is unknown.
std::optional<double> least_time_ns(const Facts& facts, const KernelCall& kernel) {
  const GpuDevice& device = kernel_facts(facts).roofline.device;
  const double floor_ns = kernel.call->floor_ns();
  const std::optional<Attainable> known = attainable(facts, kernel);
  const auto at_rate_ns = [&] {
    return std::max(floor_ns, kernel.call->compute_floor_ns / known->ratio);
  };
  if (known && !known->is_above) return at_rate_ns();
  if (device.compute_major == 9 && backend_of(facts, kernel) != AttentionBackend::kOther &&
      !has_square_mask(facts, kernel))
    return std::nullopt;
  return known ? at_rate_ns() : floor_ns;
}

struct SlowAttention {
  Savings found;
  const KernelCall* longest = nullptr;
  double flops = 0;
  std::int64_t time_ns = 0;
  bool is_known = false;  // attainable() has a value for the longest call
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
    const std::optional<double> least_ns = least_time_ns(facts, kernel);
    if (!least_ns || static_cast<double>(call.time_ns) < kLeastLead * *least_ns) continue;
    // The time of a call includes its helper kernels (the sum of dO * O, the conversion of dQ).
    found.add(kernel.slice, call.start_ns, call.end_ns, call.time_ns - std::llround(*least_ns));
    flops += kernel.work->flops;
    time_ns += call.time_ns;
    if (!longest || call.time_ns > longest->call->time_ns) longest = &kernel;
  }
  found.finish();
  if (!longest || wall_share(facts, found.time_ns()) < 0.05) return std::nullopt;
  return SlowAttention{std::move(found), longest, flops, time_ns,
                       attainable(facts, *longest).has_value()};
}

// Advises the backends that this GPU has and the program does not use. If there are none: a larger batch, if it could grow.
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
  } else {
    const auto query = operator_inputs(*facts.trace, longest.call->op)
                           .tensor(longest.work->is_attention_backward ? 1 : 0);
    const bool could_grow = query && query->rank() == 4 && query->elements() < kManyElements &&
                            batch_could_grow(facts, query->dims[0]);
    const bool is_fastest = used != AttentionBackend::kOther;
    finding.try_next.push_back(
        could_grow ? "use a larger batch: more samples fill the GPU better; a fused backend is in "
                     "use already"
        : is_fastest ? "nothing: the fastest known backend is in use already"
                     : "nothing is known: a fused backend is in use already");
    finding.action = could_grow   ? say("Use a larger batch: a fused backend is in use already")
                     : is_fastest ? say("No change is known: the fastest known backend is in use")
                                  : say("No change is known: a fused backend is in use already");
    if (!could_grow) finding.kind = FindingKind::kWhere;
  }
}

Finding tell_slow_attention(const Facts& facts, const SlowAttention& measured) {
  const auto& [found, longest, flops, time_ns, is_known] = measured;
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
  if (is_known)
    finding.arithmetic.push_back(
        say("counted against the rates that torch's attention reached on a Hopper GPU for the "
            "same head size, mask, direction and about the same length, where these are known"));
  finding.evidence.push_back(
      {longest->slice, say("the longest, {}", {kernel(facts.trace->name(longest->slice))})});
  const bool is_masked = has_square_mask(facts, *longest);
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
  // If the attention runs in float32, these two rules report the same calls.
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
    .keeps_kernels = true,
};

}  // namespace lanescope::explain::rules
