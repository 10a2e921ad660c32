// Attention runs as two matmuls and a softmax: scaled_dot_product_attention's fallback, or written
// out by the program.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lanescope/base/json_value.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::OperatorKind;

namespace {

constexpr char kMath[] = "aten::_scaled_dot_product_attention_math";
// Between the matmuls and the softmax: scaling, a mask, casts, dropout.
constexpr std::size_t kMostBefore = 10, kMostAfter = 6;

struct UnfusedAttention {
  Savings savings;
  std::uint64_t fallbacks = 0, written_out = 0;
  SliceId widest = kNone<SliceId>;  // the fallback's operator with the longest kernel
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

double scores_of(const analysis::GemmShape& gemm, std::int64_t columns) {
  return static_cast<double>(gemm.batch) * static_cast<double>(gemm.m) *
         static_cast<double>(columns);
}

// The kernels of one stream, in order.
using Stream = std::vector<const KernelCall*>;

bool is_main(const KernelCall& kernel, OperatorKind kind) {
  return kernel.work && kernel.work->kind == kind && kernel.call->kernel == kernel.slice;
}

// From a batched matmul: the place of the matmul that takes the softmax of its result; 0: none.
std::size_t end_of_attention(const Facts& facts, const Stream& stream, std::size_t first) {
  const analysis::GemmShape& scores = *stream[first]->work->gemm;
  if (scores.batch < 2 || scores.n < 2) return 0;
  const double elements = scores_of(scores, scores.n);
  std::size_t softmax = 0;
  for (std::size_t i = first + 1; i < stream.size() && i <= first + kMostBefore; ++i) {
    if (is_main(*stream[i], OperatorKind::kGemm)) return 0;
    if (!is_main(*stream[i], OperatorKind::kSoftmax) ||
        facts.trace->name(stream[i]->call->op) != "aten::_softmax")
      continue;
    // In and out, of 2 to 4 bytes an element.
    const double of_each = stream[i]->work->bytes / elements;
    if (of_each < 4 || of_each > 8) return 0;
    softmax = i;
    break;
  }
  if (softmax == 0) return 0;
  for (std::size_t i = softmax + 1; i < stream.size() && i <= softmax + kMostAfter; ++i) {
    if (!is_main(*stream[i], OperatorKind::kGemm)) continue;
    const analysis::GemmShape& values = *stream[i]->work->gemm;
    return values.batch == scores.batch && values.m == scores.m && values.k == scores.n ? i : 0;
  }
  return 0;
}

void find_written_out(const Facts& facts, const KernelFacts& kernels, UnfusedAttention& found) {
  std::unordered_map<std::uint32_t, Stream> streams;
  for (const KernelCall& kernel : kernels.kernels)
    streams[raw(facts.trace->slices().track[raw(kernel.slice)])].push_back(&kernel);
  for (const auto& [track, stream] : streams) {
    for (std::size_t i = 0; i < stream.size(); ++i) {
      if (!is_main(*stream[i], OperatorKind::kGemm) ||
          find_around(facts, stream[i]->op, kMath) != kNone<SliceId>)
        continue;
      const std::size_t end = end_of_attention(facts, stream, i);
      if (end == 0) continue;
      ++found.written_out;
      for (; i <= end; ++i) found.savings.add(*stream[i], stream[i]->dur_ns());
      --i;
    }
  }
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

Finding tell_math_attention(const Facts& facts, const UnfusedAttention& found) {
  const bool is_fallback = found.fallbacks >= found.written_out;
  Finding finding;
  finding.verdict =
      say(facts,
          "Attention runs without a fused kernel: {} [call|calls] {} [takes|take] {} "
          "[kernel|kernels], {} [per step].",
          {count(found.fallbacks + found.written_out),
           text(is_fallback ? "of scaled_dot_product_attention"
                            : "written out as matmul, softmax, matmul"),
           count(found.savings.calls()), ns(facts.per_step(found.savings.time_ns()))});
  if (found.fallbacks > 0 && found.written_out > 0)
    finding.arithmetic.push_back(say(
        facts, "{} [falls|fall] back inside scaled_dot_product_attention, {} [is|are] written out",
        {count(found.fallbacks), count(found.written_out)}));
  finding.arithmetic.push_back(
      say("only the forward pass is counted: the backward pass cannot be distinguished from other "
          "matmuls"));
  if (found.widest != kNone<SliceId>)
    if (const auto dims = facts.trace->slice_args(found.widest).text(ArgKey::kInputDims))
      finding.arithmetic.push_back(
          say("shapes of the longest: {}", {name(facts.trace->text(*dims).substr(0, 120))}));
  rate_finding(facts, found.savings, finding);
  finding.evidence.push_back(longest_of(facts, found.savings.longest()));
  if (is_fallback)
    add_fallback_advice(facts, found.widest, finding);
  else
    finding.try_next = {
        "call torch.nn.functional.scaled_dot_product_attention instead of the written-out form",
        "pass a mask or bias as its attn_mask, or use torch.nn.attention.flex_attention"};
  for (const char* covered : {"no-roof", "inflated-tensor"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say("Attention runs without a fused kernel");
  if (!is_fallback)
    finding.action =
        say("Call F.scaled_dot_product_attention; of nn.MultiheadAttention: need_weights=False");
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
