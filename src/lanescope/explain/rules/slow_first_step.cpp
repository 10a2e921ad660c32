// The first recorded step takes longer than the others: warm-up, of the program or the recording.
#include <algorithm>
#include <map>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::StepRange;

Outcome slow_first_step(const Facts& facts) {
  const auto& steps = facts.steps.steps;
  if (!facts.steps.marked || steps.size() < 3) return NotChecked{kNeedsSteps};
  // By the device's windows where there is a device, else by the CPU's.
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < steps.size(); ++i)
    lengths.push_back(facts.main_device ? facts.device().windows[i].length_ns()
                                        : steps[i].cpu_end_ns - steps[i].cpu_start_ns);
  const std::int64_t first = lengths[0];
  const std::int64_t median = analysis::lower_median({lengths.begin() + 1, lengths.end()});
  if (first - median < 50'000 || first * 2 < median * 3) return Quiet{};

  const TrackId thread = steps[0].slice == kNone<SliceId>
                             ? facts.main_thread
                             : facts.trace->slices().track[raw(steps[0].slice)];
  const auto shares_of = [&](std::size_t from, std::size_t to) {
    std::vector<HostStretch> stretches;
    for (std::size_t i = from; i < to; ++i)
      stretches.push_back({thread, steps[i].cpu_start_ns, steps[i].cpu_end_ns, kNone<SliceId>});
    return host_shares(facts, stretches);
  };
  std::map<std::string, std::int64_t> usual;
  for (const HostShare& share : shares_of(1, steps.size()))
    usual[share.name] = share.time_ns / static_cast<std::int64_t>(steps.size() - 1);
  std::vector<HostShare> more = shares_of(0, 1);
  for (HostShare& share : more)
    if (const auto entry = usual.find(share.name); entry != usual.end())
      share.time_ns -= entry->second;
  std::stable_sort(more.begin(), more.end(),
                   [](const HostShare& a, const HostShare& b) { return a.time_ns > b.time_ns; });

  Finding finding;
  finding.kind = FindingKind::kOnce;
  std::int64_t profiler = 0;
  if (facts.main_device) profiler = facts.device().walls[0].idle_by(analysis::IdleCause::kProfiler);
  const bool is_profiler = profiler * 2 > first - median;
  finding.verdict = say("The first step took {}, {} times the median of the other {} ({}): {}.",
                        {ns(first), factor(first, median), count(steps.size() - 1), ns(median),
                         text(is_profiler ? "most of it is the profiler's own start"
                                          : "start-up, not a usual step")});
  finding.at_stake_ns = first - median;
  if (profiler > 0)
    finding.arithmetic.push_back(say("idle in the profiler's own work during it: {} of the {} more",
                                     {ns(profiler), ns(first - median)}));
  // What the CPU did while the profiler held it up would blame the innocent.
  for (std::size_t i = 0; !is_profiler && i < more.size() && i < 3; ++i) {
    if (more[i].time_ns * 20 < first - median) break;
    Sentence text = describe(more[i]);
    text.pattern = "{} more than usual: " + text.pattern;
    text.values.insert(text.values.begin(), ns(more[i].time_ns));
    finding.evidence.push_back({more[i].longest, std::move(text)});
  }
  finding.try_next = {
      "leave it out of averages; give the profiler's schedule a warmup of a step or "
      "more",
      "libraries load kernels, pick algorithms and fill caches on first use: run a "
      "few steps before measuring"};
  finding.sample_count = steps.size();
  finding.confidence = steps.size() >= 4 ? Confidence::kHigh : Confidence::kMedium;
  return finding;
}

}  // namespace lanescope::explain::rules
