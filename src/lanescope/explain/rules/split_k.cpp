// A second, small kernel adds up the parts of a matmul whose sums were shared by several blocks.
#include <optional>
#include <utility>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/batch_advice.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct SplitK {
  Savings reduce;
  std::uint64_t split = 0;
  const KernelCall* example = nullptr;
};

std::optional<SplitK> measure_split_k(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  Savings reduce;
  std::uint64_t split = 0;
  const KernelCall* example = nullptr;
  for (const KernelCall& kernel : kernels.kernels) {
    if (facts.trace->name(kernel.slice).find("splitKreduce") != std::string_view::npos) {
      reduce.add(kernel, 0);
      if (!example && kernel.work && kernel.work->gemm) example = &kernel;
    } else if (kernel.name->split_k) {
      ++split;
    }
  }
  reduce.finish();
  if (reduce.calls() == 0 || share_of(reduce.time_ns(), facts.wall.partition.compute_ns) < 0.01)
    return std::nullopt;
  return SplitK{std::move(reduce), split, example};
}

Finding tell_split_k(const Facts& facts, const SplitK& measured) {
  const auto& [reduce, split, example] = measured;
  Finding finding;
  finding.kind = FindingKind::kNormal;
  finding.verdict = say(facts,
                        "The splitKreduce kernels belong to matmuls: {} of them, {} [per step], "
                        "add up parts that several blocks computed.",
                        {count(reduce.calls()), ns(facts.per_step(reduce.time_ns()))});
  finding.arithmetic.push_back(
      say("the result has too few tiles to fill the GPU, so the sum over k is shared"));
  if (example) {
    const auto& gemm = *example->work->gemm;
    const auto whole = [](std::int64_t value) { return count(static_cast<std::uint64_t>(value)); };
    finding.arithmetic.push_back(say("one of them: a result of [{} x {}], k = {}",
                                     {whole(gemm.m), whole(gemm.n), whole(gemm.k)}));
  }
  if (split > 0)
    finding.arithmetic.push_back(
        say(facts, "{} matmul [kernel has|kernels have] splitK in the name", {count(split)}));
  finding.evidence.push_back(longest_of(facts, reduce.longest()));
  finding.try_next = {example && batch_could_grow(facts, example->op)
                          ? "leave it, or use a larger batch, which gives more tiles"
                          : "leave it: without the split, fewer blocks would do the same work"};
  finding.confidence = facts.confidence();
  finding.sample_count = reduce.calls();
  finding.sample_noun = "call";
  return finding;
}

}  // namespace

extern constinit const Rule split_k_rule = {
    .id = "split-k",
    .question = "what is the splitKreduce kernel after a matmul?",
    .order = 660,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_split_k, tell_split_k>,
    .only_on_request = true,
};

}  // namespace lanescope::explain::rules
