// A long gap where no other step has one: it happened once and will not come back.
#include <algorithm>
#include <map>
#include <optional>

#include "lanescope/base/wide.h"
#include "lanescope/explain/python_frames.h"
#include "lanescope/explain/rules/extra_work.h"
#include "lanescope/explain/rules/long_step_share.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Gap;
using analysis::IdleCause;

namespace {

constexpr Need kFourSteps = {
    has_marked_steps<4>,
    "four steps or more, to separate what every step does from what happened once"};

struct LoneGap {
  const Gap* gap = nullptr;
  std::int64_t gap_ns = 0;
  std::size_t step = 0;
  std::int64_t usual_ns = 0;
  std::size_t samples = 0;
  std::int64_t profiler = 0;
  bool is_profiler = false;
};

std::optional<LoneGap> measure_lone_gap(const Facts& facts) {
  const auto& windows = facts.device().windows;
  // Idle time before the n-th run of a kernel in its step; kernel and n are the place.
  struct Seen {
    std::int64_t gap_ns;
    std::size_t step;
    const Gap* gap;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Seen>> places;
  const auto& gaps = facts.device().gaps.gaps;
  std::size_t next_gap = 0, step = 0;
  std::map<std::uint32_t, std::uint32_t> runs;
  for (const auto& work : facts.device().timeline.work) {
    while (step < windows.size() && windows[step].end_ns <= work.start_ns) {
      ++step;
      runs.clear();
    }
    if (step == windows.size()) break;
    if (work.start_ns < windows[step].start_ns) continue;
    const std::uint32_t label = raw(facts.trace->slices().name[raw(work.slice)]);
    const std::uint32_t run = runs[label]++;
    while (next_gap < gaps.size() && gaps[next_gap].end_ns < work.start_ns) ++next_gap;
    const bool ends_gap = next_gap < gaps.size() && gaps[next_gap].next_work == work.slice;
    const Gap* gap = ends_gap ? &gaps[next_gap] : nullptr;
    places[{label, run}].push_back({gap ? gap->end_ns - gap->start_ns : 0, step, gap});
  }
  std::vector<std::int64_t> lengths;
  for (const auto& window : windows) lengths.push_back(window.length_ns());
  const std::int64_t usual_step_ns = analysis::median_of_steps(std::move(lengths));
  const Seen* lone = nullptr;
  std::int64_t usual_ns = 0;
  std::size_t samples = 0;
  for (const auto& [place, seen] : places) {
    if (seen.size() < 4 || seen.size() * 4 < windows.size() * 3) continue;
    const auto longest = std::max_element(
        seen.begin(), seen.end(), [](const Seen& a, const Seen& b) { return a.gap_ns < b.gap_ns; });
    std::vector<std::int64_t> others;
    std::int64_t second = 0;
    for (auto each = seen.begin(); each != seen.end(); ++each) {
      if (each == longest) continue;
      others.push_back(each->gap_ns);
      second = std::max(second, each->gap_ns);
    }
    const std::int64_t median = analysis::lower_median(std::move(others));
    // The first step's start-up has a rule of its own.
    if (longest->step == 0 || !longest->gap || longest->gap_ns < 100'000 ||
        wide(longest->gap_ns) * 20 < usual_step_ns || longest->gap_ns < 10 * wide(median) ||
        longest->gap_ns < 3 * second)
      continue;
    if (lone && longest->gap_ns <= lone->gap_ns) continue;
    lone = &*longest;
    usual_ns = median;
    samples = seen.size();
  }
  // Where it is known what the long step does more than the others, that says more than its gap.
  if (!lone || (lone->step == facts.selection.long_step && extra_work_of_long_step(facts)))
    return std::nullopt;
  IdleTimes times = idle_within(facts.device().gaps, {lone->gap->start_ns, lone->gap->end_ns});
  const std::int64_t profiler = times[static_cast<std::size_t>(IdleCause::kProfiler)];
  const bool is_profiler = profiler * 2 > lone->gap_ns;
  return LoneGap{lone->gap, lone->gap_ns, lone->step, usual_ns, samples, profiler, is_profiler};
}

Finding tell_lone_gap(const Facts& facts, const LoneGap& measured) {
  const auto& [gap, gap_ns, step, usual_ns, samples, profiler, is_profiler] = measured;
  Finding finding;
  finding.kind = FindingKind::kOnce;
  finding.verdict =
      say("A gap of {} in step {} happened only once: at the same place the median gap of the "
          "other steps is {}{}.",
          {ns(gap_ns), step_number(facts, step), ns(usual_ns),
           text(is_profiler ? "; the profiler was busy during it" : "")});
  finding.at_stake_ns = gap_ns - usual_ns;
  explain_long_step(facts, {}, {{gap->start_ns, gap->end_ns}}, finding);
  finding.arithmetic.push_back(say(facts,
                                   "the same place: before the same run of the same kernel, [in {} "
                                   "steps]; {} of the gap is the profiler's own work",
                                   {count(samples), ns(profiler)}));
  finding.evidence.push_back(
      {gap->next_work, say("the gap ends with {}", {kernel(facts.trace->name(gap->next_work))})});
  if (!is_profiler) {
    finding.once =
        say("Once: the GPU was idle for {} in step {}", {ns(gap_ns), step_number(facts, step)});
    std::vector<HostStretch> stretches;
    for (const auto& part : facts.device().gaps.parts_of(*gap))
      stretches.push_back({part.thread, part.start_ns, part.end_ns, kNone<SliceId>});
    const auto shares = host_shares(facts, stretches);
    if (!shares.empty()) {
      Sentence text = describe(shares[0]);
      if (shares[0].time_ns * 2 > gap_ns) {
        append(finding.once, say(" (CPU meanwhile: "));
        append(finding.once, text);
        append(finding.once, say(")"));
      }
      text.pattern = "CPU meanwhile: " + text.pattern + ": {}";
      text.values.push_back(ns(shares[0].time_ns));
      finding.evidence.push_back({shares[0].longest, std::move(text)});
    }
    append(finding.once,
           say(has_python_frames(*facts.trace)
                   ? ". Record more steps to see whether it comes back."
                   : ". Record more steps to see whether it comes back; with_stack=True shows its "
                     "code."));
  }
  finding.try_next = {"do not optimise for it; record more steps to see whether it comes back"};
  finding.sample_count = samples;
  finding.confidence = samples >= 10 ? Confidence::kHigh : Confidence::kMedium;
  return finding;
}

}  // namespace

extern constinit const Rule lone_gap_rule = {
    .id = "lone-gap",
    .question = "is the big gap a part of every step?",
    .order = 210,
    .needs = {need::kGpuWork, kFourSteps},
    .run = measure_and_tell<measure_lone_gap, tell_lone_gap>,
};

}  // namespace lanescope::explain::rules
