#include "lanescope/explain/rules/bound.h"

#include <algorithm>

#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/rules/copying.h"
#include "lanescope/explain/rules/gloo_waits.h"
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

namespace {

Bound choose_bound(const Facts& facts) {
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
  // A wait for the CPU that makes copies is the copies' time.
  const Copying& copying = copying_of(facts);
  const std::int64_t waiting_ns = waiting_for_cpu_without_gloo_ns(facts);
  const std::int64_t other_waits = waiting_ns - copying.waiting_ns;
  const bool copies_are_most =
      copying.time_ns() > std::max({other_waits, whole.compute_ns, whole.exposed_communication_ns});
  consider(is_host_bound(facts) && !copies_are_most, Bound::kHost, waiting_ns);
  consider(copies_are_most && share_of(copying.time_ns(), whole.wall_ns) > kBoundingCopyRatio,
           Bound::kCopy, copying.time_ns());
  consider(share_of(part.busy_ns(), part.wall_ns) > 0.9 &&
               share_of(part.compute_ns, part.wall_ns) >= 0.75,
           Bound::kCompute, part.compute_ns);
  const std::int64_t on_cpu_ns = waiting_for_gloo_ns(facts);
  const std::int64_t exposed = whole.exposed_communication_ns + on_cpu_ns;
  consider(share_of(exposed, whole.wall_ns) > kBoundingCommunicationRatio &&
               2 * (whole.idle_ns - on_cpu_ns) <= 3 * exposed && other_waits <= exposed,
           Bound::kCommunication, exposed);
  return bound;
}

}  // namespace

Bound find_bound(const Facts& facts) { return made_once<choose_bound>(facts); }

}  // namespace lanescope::explain::rules
