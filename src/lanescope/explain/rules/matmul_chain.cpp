// What nn.Linear and @ turn into, and what the view operators inside them cost.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "lanescope/analysis/launching_calls.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/products.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

bool is_front(std::string_view name) {
  return name == "aten::linear" || name == "aten::matmul" || name == "aten::einsum";
}

struct Chain {
  std::uint64_t calls = 0;
  SliceId example = kNone<SliceId>;
};

struct MatmulChain {
  std::map<std::string, Chain> chains;
  std::uint64_t views = 0;
  std::uint64_t products = 0;
  std::int64_t view_ns = 0;
  std::int64_t cpu_ns = 0;
};

std::optional<MatmulChain> measure_matmul_chain(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto cpu = facts.steady_cpu_windows();
  std::map<std::string, Chain> chains;  // "aten::linear > aten::addmm"
  std::uint64_t views = 0, products = 0;
  std::int64_t view_ns = 0;
  // Operators with a launch inside: such an operator is more than a view.
  std::vector<bool> launches(trace.slices().size());
  for (std::size_t i = 0; i < trace.slices().size(); ++i)
    if (const SliceId op = facts.links.op_of[i];
        op != kNone<SliceId> && is_api_call(trace.kind(SliceId{static_cast<std::uint32_t>(i)})) &&
        analysis::launches_work(trace, facts.links, SliceId{static_cast<std::uint32_t>(i)}))
      launches[raw(op)] = true;
  const auto is_view_or_product = [](std::string_view name) {
    return is_view(name) || is_computed_product(name);
  };
  for (const SliceId slice : slices_named(facts, is_view_or_product)) {
    if (trace.kind(slice) != CategoryKind::kCpuOp || !inside(cpu, trace.start_ns(slice))) continue;
    const bool view = is_view(trace.name(slice));
    SliceId front = kNone<SliceId>;  // the outermost
    SliceId up = facts.nesting.parent[raw(slice)];
    for (int k = 0; k < 8 && up != kNone<SliceId>; ++k, up = facts.nesting.parent[raw(up)])
      if (is_front(trace.name(up))) front = up;
    if (front == kNone<SliceId>) continue;
    if (view) {
      if (launches[raw(slice)]) continue;
      ++views;
      view_ns += std::max<std::int64_t>(0, facts.nesting.self_ns[raw(slice)]);
      continue;
    }
    ++products;
    Chain& chain = chains[std::string(trace.name(front)) + " > " + std::string(trace.name(slice))];
    if (chain.calls++ == 0) chain.example = front;
  }
  std::int64_t cpu_ns = 0;
  for (const auto& window : cpu) cpu_ns += window.end_ns - window.start_ns;
  // Only worth a finding if a reader may blame the views.
  if (products == 0 || views < 3 || share_of(view_ns, cpu_ns) < 0.02) return std::nullopt;
  return MatmulChain{std::move(chains), views, products, view_ns, cpu_ns};
}

Finding tell_matmul_chain(const Facts& facts, const MatmulChain& measured) {
  const auto& [chains, views, products, view_ns, cpu_ns] = measured;
  Finding finding;
  finding.kind = FindingKind::kNormal;
  finding.verdict = say(
      facts,
      "The views inside matmuls launch nothing: {} calls of aten::t, transpose, view and similar "
      "operators belong to {} [matmul|matmuls] and cost {} of CPU time [per step], no GPU time.",
      {count(views), count(products), ns(facts.per_step(view_ns))});
  std::vector<std::pair<std::string, Chain>> ranked(chains.begin(), chains.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.calls > b.second.calls; });
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i)
    finding.evidence.push_back(
        {ranked[i].second.example,
         say("{} x{}", {name(ranked[i].first), count(ranked[i].second.calls)})});
  finding.arithmetic.push_back(say("{} of the CPU's time in the steps", {ratio(view_ns, cpu_ns)}));
  finding.arithmetic.push_back(
      say("mm: two matrices; addmm: with a bias; bmm: batches of matrices; the shapes decide which "
          "one runs"));
  finding.try_next = {
      "leave them: they cost no GPU time; the rule host-bound says whether the CPU is too slow"};
  finding.confidence = facts.confidence();
  finding.sample_count = products;
  finding.sample_noun = "matmul";
  return finding;
}

}  // namespace

extern constinit const Rule matmul_chain_rule = {
    .id = "matmul-chain",
    .question = "which matmul is it, and what do the views around it cost?",
    .meant_by = "addmm bmm mm",
    .order = 640,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_matmul_chain, tell_matmul_chain>,
    .only_on_request = true,
};

}  // namespace lanescope::explain::rules
