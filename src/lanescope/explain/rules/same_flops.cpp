// Matmuls of equal work, one group of them much slower than the other.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::RooflineClass;

namespace {

constexpr std::size_t kFewestCalls = 3;

// Calls with equal shapes and strides (the index of the model) and the same kernel.
struct EqualCalls {
  std::vector<const KernelCall*> calls;
  std::int64_t median_ns = 0;
};

std::int64_t median(std::vector<const KernelCall*>& calls) {
  sort_rows(calls.begin(), calls.end(), [](const KernelCall* a, const KernelCall* b) {
    return a->dur_ns() != b->dur_ns() ? a->dur_ns() < b->dur_ns() : a->start_ns < b->start_ns;
  });
  return calls[(calls.size() - 1) / 2]->dur_ns();
}

// Type, batch, the two sizes of the result (which of them is the rows does not matter), and the
// length of the sums. Products of other sizes read and write other amounts.
using Product =
    std::tuple<std::string_view, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

Product product_of(const analysis::OperatorWork& work) {
  const analysis::GemmShape& gemm = *work.gemm;
  return {work.type, gemm.batch, std::min(gemm.m, gemm.n), std::max(gemm.m, gemm.n), gemm.k};
}

struct SameFlops {
  Savings found;
  EqualCalls slow_calls;
  EqualCalls fast_calls;
};

Measurement<SameFlops> measure_same_flops(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  // Equal products of one type, limited by their operations -> (model, kernel) -> calls.
  std::map<Product, std::map<std::pair<std::uint32_t, std::string_view>, EqualCalls>> works;
  for (const KernelCall& kernel : kernels.kernels)
    if (kernel.is_gemm() && kernel.call && kernel.call->kernel == kernel.slice &&
        kernel.call->kind == RooflineClass::kCompute && kernel.is_alone &&
        kernel.dur_ns() >= 20'000)
      works[product_of(*kernel.work)][{kernel.call->work, facts.trace->name(kernel.slice)}]
          .calls.push_back(&kernel);

  struct Pair {
    const EqualCalls* fast = nullptr;
    const EqualCalls* slow = nullptr;
    std::int64_t saved_ns = 0;
  } worst;
  for (auto& [key, groups] : works) {
    const EqualCalls* fast = nullptr;
    for (auto& [model, group] : groups) {
      group.median_ns = median(group.calls);
      if (group.calls.size() >= kFewestCalls && (!fast || group.median_ns < fast->median_ns))
        fast = &group;
    }
    if (!fast) continue;
    for (const auto& [model, group] : groups) {
      if (group.calls.size() < kFewestCalls ||
          wide(group.median_ns) * 10 < wide(fast->median_ns) * 13)
        continue;
      const auto calls = static_cast<std::int64_t>(group.calls.size());
      const std::int64_t saved = calls * (group.median_ns - fast->median_ns);
      if (!worst.slow || saved > worst.saved_ns) worst = {fast, &group, saved};
    }
  }
  if (!worst.slow && !gemms_are_known(kernels)) return NotChecked{kNeedsGemmShapes};
  if (!worst.slow) return Quiet{};
  Savings found;
  for (const KernelCall* kernel : worst.slow->calls)
    found.add(*kernel, kernel->dur_ns() - worst.fast->median_ns);
  found.finish();
  if (wall_share(facts, found.saved_ns()) < 0.02) return Quiet{};
  return SameFlops{std::move(found), *worst.slow, *worst.fast};
}

// True: a forward call of a linear layer. In a backward pass, one of the two products has no weight
// (the transposed gradient times the input), and aten::mm and aten::bmm multiply any matrices.
bool multiplies_by_a_weight(const Facts& facts, SliceId op) {
  return find_around(facts, op, "aten::linear") != kNone<SliceId>;
}

bool is_backward(const Facts& facts, SliceId op) {
  for (int i = 0; i < 8 && op != kNone<SliceId>; ++i) {
    if (facts.trace->name(op).find("Backward") != std::string_view::npos) return true;
    op = facts.nesting.parent[raw(op)];
  }
  return false;
}

Finding tell_same_flops(const Facts& facts, const SameFlops& measured) {
  const auto& [found, slow_calls, fast_calls] = measured;
  const KernelCall& slow = *slow_calls.calls[(slow_calls.calls.size() - 1) / 2];
  const KernelCall& fast = *fast_calls.calls[(fast_calls.calls.size() - 1) / 2];
  const auto whole = [](std::int64_t value) { return count(static_cast<std::uint64_t>(value)); };
  Finding finding;
  finding.verdict =
      say(facts,
          "Matmuls of equal work take different times: {} [call|calls] of {} GFLOP at {} each, {} "
          "[other|others] at {}.",
          {count(slow_calls.calls.size()), whole(std::llround(slow.work->flops / 1e9)),
           ns(slow_calls.median_ns), count(fast_calls.calls.size()), ns(fast_calls.median_ns)});
  for (const KernelCall* each : {&slow, &fast})
    finding.arithmetic.push_back(
        say("{}: [{} x {}] by [{} x {}], {}",
            {text(each == &slow ? "slow" : "fast"), whole(each->work->gemm->m),
             whole(each->work->gemm->k), whole(each->work->gemm->k), whole(each->work->gemm->n),
             kernel(facts.trace->name(each->slice))}));
  rate_finding(facts, found, finding);
  finding.evidence.push_back({slow.slice, say("a median call of the slow ones")});
  finding.evidence.push_back({fast.slice, say("a median call of the fast ones")});
  // If the fast calls are the backward pass of such layers, a transposed weight would slow them.
  const bool has_weight = multiplies_by_a_weight(facts, slow.op) && !is_backward(facts, fast.op);
  if (has_weight)
    finding.try_next.push_back(
        "store the weight transposed: the slow ones may have got another tile or transposition");
  finding.try_next.push_back(
      "use torch.compile(mode=\"max-autotune\"), which measures before it picks");
  finding.brief = say("Matmuls of equal size take different times: {} or {}",
                      {ns(slow_calls.median_ns), ns(fast_calls.median_ns)});
  finding.action =
      has_weight ? say("Store the weight transposed, or torch.compile(mode=\"max-autotune\")")
                 : say("Use torch.compile(mode=\"max-autotune\"), which measures before it picks");
  return finding;
}

}  // namespace

extern constinit const Rule same_flops_rule = {
    .id = "same-flops",
    .question = "do matmuls of equal work take different times?",
    .order = 540,
    .needs = {need::kGpuWork},
    .only_if = kernels_decide,
    .then_needs = {need::kShapes, need::kPeakRates},
    .run = measure_and_tell<measure_same_flops, tell_same_flops>,
};

}  // namespace lanescope::explain::rules
