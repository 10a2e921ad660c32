// The training loop asks its DataLoader for the next batch, and the GPU is idle meanwhile.
#include <algorithm>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

// The `enumerate(DataLoader)#..._Iter.__next__` ranges, in order of time. By time and thread, not
// by nesting: frames of recorded Python stacks have no place in that.
std::vector<SliceId> loader_ranges(const Trace& trace) {
  std::vector<SliceId> ranges;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) == CategoryKind::kUserAnnotation &&
        trace.name(id).starts_with("enumerate(DataLoader)"))
      ranges.push_back(id);
  }
  std::stable_sort(ranges.begin(), ranges.end(),
                   [&](SliceId a, SliceId b) { return trace.start_ns(a) < trace.start_ns(b); });
  return ranges;
}

// Where waiting for a batch costs time: where the GPU waits for the CPU; without a GPU, everywhere.
std::vector<HostStretch> costly_stretches(const Facts& facts) {
  if (facts.main_device) return host_late_stretches(facts);
  std::vector<HostStretch> steps;
  for (const analysis::Window& window : facts.steady_windows)
    steps.push_back({facts.cpu->thread, window.start_ns, window.end_ns, kNone<SliceId>});
  return steps;
}

}  // namespace

Outcome dataloader_wait(const Facts& facts) {
  if (!facts.main_device && !facts.cpu) return NotChecked{kNeedsWork};
  if (facts.main_device && !has_launches(facts)) return NotChecked{kNeedsLaunches};
  const Trace& trace = *facts.trace;
  const std::int64_t wall_ns = facts.steady_wall_ns();
  std::int64_t idle_ns = 0;
  SliceId longest = kNone<SliceId>;
  const std::vector<HostStretch> stretches = costly_stretches(facts);
  for (const SliceId range : loader_ranges(trace)) {
    const std::int64_t before_ns = idle_ns;
    auto stretch = std::upper_bound(
        stretches.begin(), stretches.end(), trace.start_ns(range),
        [](std::int64_t time, const HostStretch& each) { return time < each.end_ns; });
    for (; stretch != stretches.end() && stretch->start_ns < trace.end_ns(range); ++stretch)
      if (stretch->thread == trace.slices().track[raw(range)])
        idle_ns += std::min(stretch->end_ns, trace.end_ns(range)) -
                   std::max(stretch->start_ns, trace.start_ns(range));
    if (idle_ns > before_ns &&
        (longest == kNone<SliceId> || trace.dur_ns(range) > trace.dur_ns(longest)))
      longest = range;
  }
  if ((facts.main_device && is_thin(facts)) || share_of(idle_ns, wall_ns) < 0.05) return Quiet{};
  const bool single = trace.name(longest).find("SingleProcess") != std::string_view::npos;
  Finding finding;
  finding.verdict = say(
      facts.main_device
          ? "Input-bound in part: the GPU is idle {} per step ({}) while the loop waits for its "
            "next batch{}."
          : "Input-bound in part: the loop waits {} per step ({}) for its next batch{}.",
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
