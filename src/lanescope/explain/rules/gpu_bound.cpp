// The GPU works all the time: what the CPU does is hidden behind it.
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

Outcome gpu_bound(const Facts& facts) {
  if (!facts.main_device) return NotChecked{kNeedsDevice};
  analysis::WallPartition part = facts.wall.partition;
  const analysis::Gap* edge = find_edge_gap(facts);
  if (edge) {
    part.wall_ns -= edge->end_ns - edge->start_ns;
    part.idle_ns -= edge->end_ns - edge->start_ns;
  }
  const bool busy = share_of(part.busy_ns(), part.wall_ns) > 0.9;
  if (is_thin(facts) || !busy || share_of(part.compute_ns, part.wall_ns) < 0.75) return Quiet{};

  Finding finding;
  finding.kind = FindingKind::kBound;
  finding.verdict = say("GPU-bound: the GPU was busy {} of a step's {}, {} of it computing{}.",
                        {ratio(part.busy_ns(), part.wall_ns), ns(facts.per_step(part.wall_ns)),
                         ratio(part.compute_ns, part.busy_ns()),
                         text(edge ? "; a gap at the edge of the recording is left out" : "")});
  finding.arithmetic.push_back(
      say("busy {} + idle {} = {} per step",
          {ns(facts.per_step(part.busy_ns())), ns(facts.per_step(part.idle_ns)),
           ns(facts.per_step(part.wall_ns))}));
  if (facts.launches.linked_count > 0)
    finding.arithmetic.push_back(
        say("up to {} launches were queued ahead of the GPU; median kernel {}",
            {count(facts.launches.deepest_queue), ns(facts.launches.median_kernel_ns)}));
  finding.try_next = {
      "make the kernels cheaper: lower precision, fewer operations, fusion; the "
      "CPU's time is hidden",
      "busy is not the same as efficient: lanescope table shows which kernels the "
      "time goes to"};
  finding.confidence = facts.confidence();
  finding.sample_count = facts.steady.size();
  return finding;
}

}  // namespace lanescope::explain::rules
