// scaled_dot_product_attention falls back to two matmuls and a softmax.
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr char kMath[] = "aten::_scaled_dot_product_attention_math";

}  // namespace

Outcome math_attention(const Facts& facts) {
  if (!facts.main_device) return NotChecked{kNeedsDevice};
  if (!has_launches(facts)) return NotChecked{kNeedsLaunches};
  if (!kernels_matter(facts)) return Quiet{};
  const KernelFacts& kernels = kernel_facts(facts);
  Savings found;
  std::uint64_t calls = 0;
  SliceId last = kNone<SliceId>, widest = kNone<SliceId>;
  for (const KernelCall& kernel : kernels.kernels) {
    const SliceId math = find_around(facts, kernel.op, kMath);
    if (math == kNone<SliceId>) continue;
    found.add(kernel, kernel.dur_ns());
    calls += math != last ? 1 : 0;
    last = math;
    if (found.longest() == kernel.slice) widest = math;
  }
  found.finish();
  if (calls == 0 || wall_share(facts, found.time_ns()) < 0.03) return Quiet{};
  Finding finding;
  finding.verdict =
      say("Attention runs without a fused kernel: {} calls of scaled_dot_product_attention take {} "
          "kernels, {} per step.",
          {count(calls), count(found.calls()), ns(facts.per_step(found.time_ns()))});
  finding.arithmetic.push_back(
      say("only its forward pass is counted: the backward pass cannot be told from other matmuls"));
  if (const auto dims = facts.trace->slice_args(widest).text(ArgKey::kInputDims))
    finding.arithmetic.push_back(
        say("shapes of the longest: {}", {name(facts.trace->text(*dims).substr(0, 120))}));
  rate_finding(facts, found, finding);
  finding.evidence.push_back(longest_of(facts, found.longest()));
  finding.try_next = {"float16 or bfloat16, a head size up to 256, no dropout in evaluation",
                      "a mask that the fused kernels take: is_causal=True, or one aligned to 8",
                      "torch.nn.attention.sdpa_kernel([...]) says why a backend was refused"};
  return finding;
}

}  // namespace lanescope::explain::rules
