// The GPU works all the time: what the CPU does is hidden behind it.
#include <optional>

#include "lanescope/explain/rules/bound.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct GpuBound {
  analysis::WallPartition part;
  bool has_edge_gap = false;
};

std::optional<GpuBound> measure_gpu_bound(const Facts& facts) {
  if (find_bound(facts) != Bound::kCompute) return std::nullopt;
  return GpuBound{.part = wall_without_edge_gap(facts),
                  .has_edge_gap = find_edge_gap(facts) != nullptr};
}

Finding tell_gpu_bound(const Facts& facts, const GpuBound& found) {
  Finding finding;
  finding.kind = FindingKind::kBound;
  finding.verdict =
      say(facts, "GPU-bound: the GPU was busy {} of [a step's] {}, {} of it computing{}.",
          {ratio(found.part.busy_ns(), found.part.wall_ns), ns(facts.per_step(found.part.wall_ns)),
           ratio(found.part.compute_ns, found.part.busy_ns()),
           text(found.has_edge_gap ? "; a gap at the start of the recording is not counted" : "")});
  finding.arithmetic.push_back(
      say(facts, "busy {} + idle {} = {} [per step]",
          {ns(facts.per_step(found.part.busy_ns())), ns(facts.per_step(found.part.idle_ns)),
           ns(facts.per_step(found.part.wall_ns))}));
  if (facts.launches.linked_count > 0)
    finding.arithmetic.push_back(
        say(facts, "up to {} [launch was|launches were] queued ahead of the GPU; median kernel {}",
            {count(facts.launches.deepest_queue), ns(facts.launches.median_kernel_ns)}));
  finding.try_next = {
      "make the kernels cheaper: lower precision, fewer operations, fusion; the "
      "CPU's time is hidden",
      "see which kernels take the time (lanescope table): busy is not the same as efficient"};
  finding.action = say("Make the largest kernels cheaper: lower precision, fusion, smaller shapes");
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
