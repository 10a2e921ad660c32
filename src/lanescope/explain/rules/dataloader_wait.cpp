// The GPU is idle while the training loop asks its DataLoader for the next batch.
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

// The `enumerate(DataLoader)#..._Iter.__next__` range around a slice.
SliceId loader_range(const Facts& facts, SliceId slice) {
  const Trace& trace = *facts.trace;
  for (; slice != kNone<SliceId>; slice = facts.nesting.parent[raw(slice)])
    if (trace.kind(slice) == CategoryKind::kUserAnnotation &&
        trace.name(slice).starts_with("enumerate(DataLoader)"))
      return slice;
  return slice;
}

}  // namespace

Outcome dataloader_wait(const Facts& facts) {
  if (!facts.main_device) return NotChecked{kNeedsDevice};
  if (!has_launches(facts)) return NotChecked{kNeedsLaunches};
  const Trace& trace = *facts.trace;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  std::int64_t idle_ns = 0;
  SliceId longest = kNone<SliceId>;
  for (const HostStretch& stretch : host_late_stretches(facts))
    facts.host->visit(
        stretch.thread, stretch.start_ns, stretch.end_ns,
        [&](SliceId slice, std::int64_t from, std::int64_t to) {
          const SliceId range = loader_range(facts, slice);
          if (range == kNone<SliceId>) return;
          idle_ns += to - from;
          if (longest == kNone<SliceId> || trace.dur_ns(range) > trace.dur_ns(longest))
            longest = range;
        });
  if (is_thin(facts) || share_of(idle_ns, wall_ns) < 0.05) return Quiet{};
  const bool single = trace.name(longest).find("SingleProcess") != std::string_view::npos;
  Finding finding;
  finding.verdict =
      say("Input-bound in part: the GPU is idle {} per step ({}) while the loop waits for its next "
          "batch{}.",
          {ns(facts.per_step(idle_ns)), ratio(idle_ns, wall_ns),
           text(single ? ", which is loaded in the training process itself" : "")});
  finding.at_stake_ns = facts.per_step(idle_ns);
  finding.at_stake_ratio = share_of(idle_ns, wall_ns);
  finding.evidence.push_back({longest, say("the longest such wait")});
  finding.try_next = {single ? "DataLoader(num_workers=...): load in worker processes"
                             : "more workers (num_workers), a larger prefetch_factor, cheaper "
                               "decoding; persistent_workers=True against restarts"};
  finding.confidence = facts.confidence();
  finding.sample_count = facts.steady.size();
  return finding;
}

}  // namespace lanescope::explain::rules
