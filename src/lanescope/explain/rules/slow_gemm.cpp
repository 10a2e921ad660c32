// Large matmuls that reach less than 40 % of the GPU's peak.
#include <cmath>
#include <unordered_map>
#include <utility>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/batch_advice.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct SlowGemm {
  Savings found;
  const KernelCall* longest = nullptr;
  double flops = 0;
  double flop_time_ns = 0;
};

Measurement<SlowGemm> measure_slow_gemm(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  Savings found;
  const KernelCall* longest = nullptr;
  double flops = 0, flop_time_ns = 0;
  for (const KernelCall& kernel : kernels.kernels) {
    if (!kernel.is_gemm() || !is_large_and_slow(kernel)) continue;
    const auto& call = *kernel.call;
    found.add(kernel, kernel.dur_ns() - std::llround(call.floor_ns()));
    flops += kernel.work->flops;
    flop_time_ns += static_cast<double>(call.time_ns);
    if (!longest || kernel.dur_ns() > longest->dur_ns()) longest = &kernel;
  }
  found.finish();
  if (!longest && !gemms_are_known(kernels)) return NotChecked{kNeedsGemmShapes};
  if (!longest || wall_share(facts, found.time_ns()) < 0.05) return Quiet{};
  return SlowGemm{std::move(found), longest, flops, flop_time_ns};
}

Finding tell_slow_gemm(const Facts& facts, const SlowGemm& measured) {
  const auto& [found, longest, flops, flop_time_ns] = measured;
  const auto& gemm = *longest->work->gemm;
  const auto whole = [](std::int64_t value) { return count(static_cast<std::uint64_t>(value)); };
  Finding finding;
  finding.verdict = say(facts,
                        "Large matmuls are far below the peak: {} [call|calls] of 1 GFLOP and more "
                        "[reaches|reach] less than 40 % of it, {} [per step].",
                        {count(found.calls()), ns(facts.per_step(found.time_ns()))});
  finding.arithmetic.push_back(
      say("together {} TFLOP/s; the longest, [{} x {}] by [{} x {}] in {}, reached {} of the peak",
          {whole(std::llround(flops / flop_time_ns / 1e3)), whole(gemm.m), whole(gemm.k),
           whole(gemm.k), whole(gemm.n), name(longest->work->type),
           ratio(std::llround(longest->call->achieved_ratio() * 1000), 1000)}));
  if (gemm.batch > 1)
    finding.arithmetic.push_back(say("a batch of {} of them", {whole(gemm.batch)}));
  rate_finding(facts, found, finding);
  finding.evidence.push_back(longest_of(facts, found.longest()));
  const bool could_grow = batch_could_grow(facts, longest->op);
  finding.try_next = {
      "see the rules few-blocks, wave-tail, unaligned-dims and fp32-matmul for a reason",
      could_grow
          ? "use a larger batch, or torch.compile(mode=\"max-autotune\"), which tries other kernels"
          : "torch.compile(mode=\"max-autotune\") tries other kernels"};
  finding.explains.push_back({"no-roof", finding.at_stake_ns});
  finding.brief = say("Large matmuls run far below the GPU's peak");
  finding.action = could_grow
                       ? say("Use a larger batch, or torch.compile(mode=\"max-autotune\")")
                       : say("Let torch.compile(mode=\"max-autotune\") try other kernels for them");
  if (gemm.batch > 1 && (gemm.m == 1 || gemm.n == 1)) {
    finding.brief = say("A batch of products of single rows runs far below the GPU's peak");
    finding.action =
        say("If all rows have one weight: F.linear(x, weight) multiplies them in one product");
    finding.try_next = {
        "if one weight is multiplied row by row (bmm with an expanded weight): F.linear(x, weight) "
        "or x @ W does all rows at once; a larger batch would only make more such products"};
  }
  return finding;
}

}  // namespace

extern constinit const Rule slow_gemm_rule = {
    .id = "slow-gemm",
    .question = "are large matmuls far below the GPU's peak?",
    .order = 520,
    .needs = {need::kGpuWork},
    .only_if = kernels_decide,
    .then_needs = {need::kShapes, need::kPeakRates},
    .run = measure_and_tell<measure_slow_gemm, tell_slow_gemm>,
    .fix = Fix::kGpu,
    .keeps_kernels = true,
};

}  // namespace lanescope::explain::rules
