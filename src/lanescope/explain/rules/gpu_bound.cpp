// The GPU works all the time: what the CPU does costs nothing.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/bound.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct GpuBound {
  analysis::WallPartition part;
  std::int64_t edge_gap_ns = 0;  // left out of `part`
};

std::optional<GpuBound> measure_gpu_bound(const Facts& facts) {
  if (find_bound(facts) != Bound::kCompute) return std::nullopt;
  const analysis::Gap* edge = find_edge_gap(facts);
  return GpuBound{.part = wall_without_edge_gap(facts),
                  .edge_gap_ns = edge ? edge->end_ns - edge->start_ns : 0};
}

// What can make the kernels cheaper and is not done yet. A smaller type: if most of the time is
// spent on float32 or wider. Fusion: if at least a fifth of the time is in unfused kernels other
// than products and attention.
std::string cheaper_by(const Facts& facts) {
  std::int64_t all_ns = 0, wide_ns = 0, fusable_ns = 0;
  for (const KernelCall& kernel : kernel_facts(facts).kernels) {
    all_ns += kernel.dur_ns();
    const std::string_view type = kernel.input_type();
    if (type == "f32" || type == "f64") wide_ns += kernel.dur_ns();
    if (!kernel.is_gemm() && !kernel.is_convolution() && !kernel.is_attention() &&
        kernel.name->fused.empty() && !facts.trace->name(kernel.slice).starts_with("triton_"))
      fusable_ns += kernel.dur_ns();
  }
  std::string text;
  if (wide_ns * 2 > all_ns) text += "lower precision, ";
  if (fusable_ns * 5 >= all_ns) text += "fusion, ";
  return text + "faster implementations, smaller shapes";
}

Finding tell_gpu_bound(const Facts& facts, const GpuBound& found) {
  Finding finding;
  finding.kind = FindingKind::kBound;
  const std::vector<Value> values = {
      linked(ratio(found.part.busy_ns(), found.part.wall_ns), shows::kBusy),
      linked(ns(facts.per_step(found.part.wall_ns)), shows::kStep),
      linked(ratio(found.part.compute_ns, found.part.busy_ns()), shows::kCompute)};
  if (found.edge_gap_ns == 0) {
    finding.verdict =
        say(facts, "GPU-bound: the GPU was busy {} of [a step's] {}, {} of it computing.", values);
  } else {
    finding.verdict =
        say(facts,
            "GPU-bound: the GPU was busy {} of {} [per step], {} of it computing, after a gap "
            "of {} at the start in which nothing was recorded.",
            values);
    finding.verdict.values.push_back(linked(ns(found.edge_gap_ns), shows::kIdle));
  }
  finding.arithmetic.push_back(
      say(facts, "busy {} + idle {} = {} [per step]",
          {ns(facts.per_step(found.part.busy_ns())), ns(facts.per_step(found.part.idle_ns)),
           ns(facts.per_step(found.part.wall_ns))}));
  if (facts.launches.linked_count > 0)
    finding.arithmetic.push_back(
        say(facts, "up to {} [launch was|launches were] queued ahead of the GPU; median kernel {}",
            {count(facts.launches.deepest_queue), ns(facts.launches.median_kernel_ns)}));
  const std::string cheaper = cheaper_by(facts);
  finding.try_next = {
      "make the kernels cheaper: " + cheaper + "; the CPU's time is hidden",
      "see which kernels take the time (lanescope table): busy is not the same as efficient"};
  finding.action = say("Make the largest kernels cheaper: {}", {text(cheaper)});
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  return finding;
}

}  // namespace

extern constinit const Rule gpu_bound_rule = {
    .id = "gpu-bound",
    .question = "is the GPU itself the limit?",
    .meant_by = "compute fully bigger",
    .order = 20,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_gpu_bound, tell_gpu_bound>,
    .bounds_step = true,
};

}  // namespace lanescope::explain::rules
