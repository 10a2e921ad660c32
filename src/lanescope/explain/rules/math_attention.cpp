// Attention runs as two matmuls and a softmax: scaled_dot_product_attention's fallback, or written
// out by the program.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "lanescope/base/json_value.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/written_attention.h"

namespace lanescope::explain::rules {

namespace {

constexpr char kMath[] = "aten::_scaled_dot_product_attention_math";

struct UnfusedAttention {
  Savings savings;
  std::uint64_t fallbacks = 0, written_out = 0;
  SliceId widest = kNone<SliceId>;  // the fallback's operator with the longest kernel
  // Of written-out attention:
  std::uint64_t with_mask = 0;
  std::int64_t backward_ns = 0;
  std::vector<SliceId> kernels_between;
  SliceId longest_between = kNone<SliceId>, on_scores = kNone<SliceId>;  // a kernel, and its call
};

void find_fallbacks(const Facts& facts, const KernelFacts& kernels, UnfusedAttention& found) {
  SliceId last = kNone<SliceId>;
  for (const KernelCall& kernel : kernels.kernels) {
    const SliceId math = find_around(facts, kernel.op, kMath);
    if (math == kNone<SliceId>) continue;
    found.savings.add(kernel, kernel.dur_ns());
    found.fallbacks += math != last ? 1 : 0;
    last = math;
    if (found.savings.longest() == kernel.slice) found.widest = math;
  }
}

// The kernels between the two products, and those of their backward passes: a fused kernel multiplies as much, and keeps the scores
// in registers.
void find_written_out(const Facts& facts, const KernelFacts& kernels, UnfusedAttention& found) {
  const std::vector<WrittenAttention> all = written_attention(facts);
  if (all.empty()) return;
  std::unordered_set<std::uint32_t> forward, backward;  // raw slices of calls and nodes
  for (const WrittenAttention& each : all) {
    for (const SliceId call : each.on_scores) forward.insert(raw(call));
    found.with_mask += each.has_mask ? 1 : 0;
  }
  for (const AutogradPair& pair : autograd_pairs(facts))
    if (forward.contains(raw(pair.forward)))
      for (const SliceId node : pair.nodes) backward.insert(raw(node));
  std::int64_t longest_ns = -1;
  for (const KernelCall& kernel : kernels.kernels) {
    SliceId op = kernel.op;
    while (op != kNone<SliceId> && !forward.contains(raw(op)) && !backward.contains(raw(op)))
      op = facts.nesting.parent[raw(op)];
    if (op == kNone<SliceId>) continue;
    found.savings.add(kernel, kernel.dur_ns());
    found.kernels_between.push_back(kernel.slice);
    if (forward.contains(raw(op)) && kernel.dur_ns() > longest_ns) {
      longest_ns = kernel.dur_ns();
      found.longest_between = kernel.slice;
      found.on_scores = op;
    }
    if (backward.contains(raw(op))) found.backward_ns += kernel.dur_ns();
  }
  found.written_out = found.kernels_between.empty() ? 0 : all.size();
}

std::optional<UnfusedAttention> measure_math_attention(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  UnfusedAttention found;
  find_fallbacks(facts, kernels, found);
  find_written_out(facts, kernels, found);
  found.savings.finish();
  if (wall_share(facts, found.savings.time_ns()) < 0.03) return std::nullopt;
  return found;
}

JsonValue input_of(const Facts& facts, SliceId op, ArgKey key, std::size_t index) {
  const auto text = facts.trace->slice_args(op).text(key);
  const auto list = text ? parse_json(facts.trace->text(*text)) : std::nullopt;
  return list && index < list->items.size() ? list->items[index] : JsonValue{};
}

// Says which inputs of the call prevent the fused kernels, if its inputs are recorded: query, key,
// value, mask, dropout.
void add_fallback_advice(const Facts& facts, SliceId op, Finding& finding) {
  std::vector<std::string> changes;
  bool is_known = false;
  if (op != kNone<SliceId>) {
    const JsonValue dims = input_of(facts, op, ArgKey::kInputDims, 0);
    const JsonValue type = input_of(facts, op, ArgKey::kInputType, 0);
    is_known = !dims.items.empty();
    if (type.text == "float" || type.text == "double") changes.push_back("bfloat16 or float16");
    if (is_known && dims.items.back().integer.value_or(0) > 256)
      changes.push_back("a head size of 256 or less");
    if (!input_of(facts, op, ArgKey::kInputDims, 3).items.empty())
      changes.push_back("is_causal=True instead of a causal mask");
    const std::string dropout = input_of(facts, op, ArgKey::kConcreteInputs, 4).text;
    if (!dropout.empty() && dropout.find_first_not_of("0.") != std::string::npos)
      changes.push_back("no dropout where it is not needed");
  }
  if (!changes.empty()) {
    const std::string all = fmt::format("{}", fmt::join(changes, ", "));
    finding.try_next.push_back("use what the fused kernels take: " + all);
    finding.action = say("Use {}", {text(all)});
  } else if (is_known) {
    finding.try_next.push_back(
        "look for what switches the fused kernels off: sdpa_kernel(SDPBackend.MATH), "
        "torch.backends.cuda.enable_flash_sdp(False); type, head size and mask of the longest call "
        "do not");
    finding.action = say("Look for what switches fused kernels off, as sdpa_kernel(MATH) does");
  } else {
    finding.try_next.push_back(
        "record with record_shapes=True: type, head size and mask decide which kernels can run");
    finding.action = say("Run it under sdpa_kernel([FLASH_ATTENTION]), which says what it refuses");
  }
  finding.try_next.push_back(
      "run it under torch.nn.attention.sdpa_kernel([...]), which says why a backend was refused");
}

void tell_written_out(const Facts& facts, const UnfusedAttention& found, Finding& finding) {
  const bool has_mask = found.with_mask * 2 > found.written_out;
  finding.arithmetic.push_back(
      say(facts,
          "counted: the kernels between the two matmuls (scaling, mask, casts, softmax, dropout) "
          "and those of their backward passes, {} [per step]; the matmuls stay, since a fused "
          "kernel multiplies as much",
          {ns(facts.per_step(found.backward_ns))}));
  finding.all_work = found.kernels_between;
  finding.evidence.push_back(called_at(facts, found.on_scores, say("works on the scores")));
  finding.try_next = {
      has_mask
          ? "call torch.nn.functional.scaled_dot_product_attention instead: is_causal=True for "
            "a causal mask, attn_mask=mask for another mask or bias"
          : "call torch.nn.functional.scaled_dot_product_attention instead of the written-out "
            "form",
      "it sums the softmax in float32 itself, so its inputs may be bfloat16",
      "a change of the scores that it has no argument for: torch.nn.attention.flex_attention",
      "where something else reads the weights too, they must be written: keep it there"};
  finding.brief =
      say(facts, "Attention is written out as matmul, softmax, matmul, {} [time|times] [per step]",
          {count(std::max<std::uint64_t>(1, found.written_out / facts.selection.steady.size()))});
  finding.action = say(
      has_mask
          ? "F.scaled_dot_product_attention(q, k, v, is_causal=True or attn_mask=mask); of "
            "nn.MultiheadAttention: need_weights=False"
          : "Call F.scaled_dot_product_attention; of nn.MultiheadAttention: need_weights=False");
}

Finding tell_math_attention(const Facts& facts, const UnfusedAttention& found) {
  const bool is_fallback = found.fallbacks >= found.written_out;
  Finding finding;
  finding.verdict =
      say(facts,
          "Attention runs without a fused kernel: {} [call|calls] {} [takes|take] {} "
          "[kernel|kernels]{}, {} [per step].",
          {count(found.fallbacks + found.written_out),
           text(is_fallback ? "of scaled_dot_product_attention"
                            : "written out as matmul, softmax, matmul"),
           count(found.savings.calls()), text(is_fallback ? "" : " between the matmuls"),
           ns(facts.per_step(found.savings.time_ns()))});
  if (found.fallbacks > 0 && found.written_out > 0)
    finding.arithmetic.push_back(say(
        facts, "{} [falls|fall] back inside scaled_dot_product_attention, {} [is|are] written out",
        {count(found.fallbacks), count(found.written_out)}));
  if (found.fallbacks > 0)
    finding.arithmetic.push_back(
        say("of the fallback only the forward pass is counted: its backward pass cannot be "
            "distinguished from other matmuls"));
  if (found.widest != kNone<SliceId>)
    if (const auto dims = facts.trace->slice_args(found.widest).text(ArgKey::kInputDims))
      finding.arithmetic.push_back(
          say("shapes of the longest: {}", {name(facts.trace->text(*dims).substr(0, 120))}));
  rate_finding(facts, found.savings, finding);
  finding.evidence.push_back(
      longest_of(facts, is_fallback ? found.savings.longest() : found.longest_between));
  for (const char* covered : {"no-roof", "inflated-tensor"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  if (!is_fallback)
    for (const char* covered : {"unfused-chain", "back-and-forth", "dtype-casts"})
      finding.explains.push_back({covered, finding.at_stake_ns});
  if (is_fallback) {
    add_fallback_advice(facts, found.widest, finding);
    finding.brief = say("Attention runs without a fused kernel");
  } else {
    tell_written_out(facts, found, finding);
  }
  return finding;
}

}  // namespace

extern constinit const Rule math_attention_rule = {
    .id = "math-attention",
    .question = "does attention run without a fused kernel?",
    .meant_by = "flash sdpa",
    .order = 630,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_math_attention, tell_math_attention>,
    .is_regression = true,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
