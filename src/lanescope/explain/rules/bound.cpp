#include "lanescope/explain/rules/bound.h"

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

analysis::WallPartition wall_without_edge_gap(const Facts& facts) {
  analysis::WallPartition part = facts.wall.partition;
  if (const analysis::Gap* edge = find_edge_gap(facts)) {
    part.wall_ns -= edge->end_ns - edge->start_ns;
    part.idle_ns -= edge->end_ns - edge->start_ns;
  }
  return part;
}

Bound find_bound(const Facts& facts) {
  if (is_thin(facts)) return Bound::kNone;
  Bound bound = Bound::kNone;
  std::int64_t most_ns = 0;
  const auto consider = [&](bool holds, Bound which, std::int64_t time_ns) {
    if (!holds || time_ns <= most_ns) return;
    bound = which;
    most_ns = time_ns;
  };
  const auto& whole = facts.wall.partition;
  const analysis::WallPartition part = wall_without_edge_gap(facts);
  consider(is_host_bound(facts), Bound::kHost, facts.waiting_for_cpu_ns());
  consider(share_of(part.busy_ns(), part.wall_ns) > 0.9 &&
               share_of(part.compute_ns, part.wall_ns) >= 0.75,
           Bound::kCompute, part.compute_ns);
  const std::int64_t exposed = whole.exposed_communication_ns;
  consider(share_of(exposed, whole.wall_ns) > kBoundingCommunicationRatio &&
               whole.idle_ns <= 2 * exposed,
           Bound::kCommunication, exposed);
  return bound;
}

}  // namespace lanescope::explain::rules
