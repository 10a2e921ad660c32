// The first recorded step takes longer than the others: warm-up, of the program or the recording.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/explain/left_out_steps.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/start_up_calls.h"

namespace lanescope::explain::rules {

namespace {

constexpr Need kThreeWholeSteps = {
    [](const Facts& facts) {
      return facts.steps.marked && facts.steps.steps.size() - facts.selection.cut().size() >= 3;
    },
    need::kRecordSteps};

struct SlowFirstStep {
  std::int64_t first = 0;
  std::int64_t median = 0;
  std::size_t whole_steps = 0;
  std::int64_t profiler = 0;
  bool is_profiler = false;
  std::int64_t unrecorded = 0;
  std::int64_t lead = 0;  // before the first step's first GPU work, beyond the others' median
};

// A step that begins with an empty queue waits for its first launch. Less than this is not worth a
// finding.
constexpr std::int64_t kLongLeadNs = 1'000'000;

// How much longer nothing ran at the start of the first step than at that of the others.
std::int64_t lead_of_first_step(const Facts& facts, std::size_t whole_steps) {
  if (!facts.main_device) return 0;
  const auto& works = facts.device().timeline.work;
  std::vector<std::int64_t> leads;
  for (std::size_t i = 0; i < whole_steps; ++i) {
    const analysis::Window window = facts.step_window(i);
    const auto first = std::lower_bound(
        works.begin(), works.end(), window.start_ns,
        [](const analysis::DeviceWork& work, std::int64_t at) { return work.start_ns < at; });
    leads.push_back(first == works.end() || first->start_ns >= window.end_ns
                        ? 0
                        : first->start_ns - window.start_ns);
  }
  const std::int64_t usual = analysis::median_of_steps({leads.begin() + 1, leads.end()});
  return std::max<std::int64_t>(0, leads[0] - usual);
}

constexpr std::int64_t kLongestLatencyNs = 50'000;  // of a launch on its way to the GPU

// The part of the first step between the launch of the recording's first GPU work and its
// start.
std::int64_t unrecorded_work_ns(const Facts& facts) {
  if (!facts.main_device) return 0;
  const auto& works = facts.device().timeline.work;
  const analysis::Window window = facts.step_window(0);
  if (works.empty() || works.front().start_ns >= window.end_ns) return 0;
  const SliceId launch = facts.links.launch_of[raw(works.front().slice)];
  if (launch == kNone<SliceId>) return 0;
  const std::int64_t launched_ns = std::max(window.start_ns, facts.trace->end_ns(launch));
  const std::int64_t late_ns = works.front().start_ns - launched_ns;
  return late_ns >= kLongestLatencyNs ? late_ns : 0;
}

std::optional<SlowFirstStep> measure_slow_first_step(const Facts& facts) {
  const auto& steps = facts.steps.steps;
  std::vector<std::int64_t> lengths;
  const std::size_t whole = steps.size() - facts.selection.cut().size();  // cut steps come last
  for (std::size_t i = 0; i < whole; ++i) lengths.push_back(facts.step_window(i).length_ns());
  // If iterations were found, everything before those that are measured is start-up, or nothing is.
  const auto before = time_before_iterations(facts);
  if (facts.steps.found && (!before || !before->is_start_up)) return std::nullopt;
  const auto start_up = before ? std::optional(before->window) : std::nullopt;
  // What takes long in each later step, too, is no start-up.
  if (start_up && facts.main_device && !start_up_calls(facts).repeated.empty()) return std::nullopt;
  // If the first work was launched but did not start, the GPU was busy with unrecorded work. That
  // is not start-up.
  const std::int64_t unrecorded = start_up ? 0 : unrecorded_work_ns(facts);
  const std::int64_t first = start_up ? start_up->length_ns() : lengths[0] - unrecorded;
  const std::int64_t median = analysis::median_of_steps({lengths.begin() + 1, lengths.end()});
  if (median == 0 || first - median < 50'000 || first * 2 < median * 3) return std::nullopt;
  const std::int64_t lead =
      start_up ? 0 : std::max<std::int64_t>(0, lead_of_first_step(facts, whole) - unrecorded);
  // If the CPU is the limit, each step begins in this way.
  if (lead * 2 > first - median && lead < kLongLeadNs && !is_host_bound(facts)) return std::nullopt;
  std::int64_t profiler = 0;
  if (facts.main_device && !start_up)
    profiler = facts.device().walls[0].idle_by(analysis::IdleCause::kProfiler);
  return SlowFirstStep{first,      median, lengths.size(), profiler, profiler * 2 > first - median,
                       unrecorded, lead};
}

Finding tell_slow_first_step(const Facts& facts, const SlowFirstStep& measured) {
  const auto& [first, median, whole_steps, profiler, is_profiler, unrecorded, lead] = measured;
  Finding finding;
  finding.kind = FindingKind::kOnce;
  finding.verdict = say("The first step took {}, {} times the median of the other {} ({}): {}.",
                        {ns(first), factor(first, median), count(whole_steps - 1), ns(median),
                         text(is_profiler ? "most of it is the profiler's own start"
                                          : "start-up, not a usual step")});
  if (facts.steps.found) finding.verdict = start_up_note(facts);
  finding.at_stake_ns = first - median;
  if (profiler > 0)
    finding.arithmetic.push_back(
        say("the GPU was idle for {} during the profiler's own work, of {} more than usual",
            {ns(profiler), ns(first - median)}));
  if (unrecorded > 0)
    finding.arithmetic.push_back(
        say("{} before its first GPU work are not counted: the work was launched, and the GPU was "
            "busy with what was launched before the recording",
            {ns(unrecorded)}));
  if (lead * 2 > first - median)
    finding.arithmetic.push_back(
        say("{} of the {} more than usual passed before its first GPU work",
            {ns(lead), ns(first - median)}));
  // What the CPU did while the profiler delayed it is not the cause.
  if (!is_profiler && !facts.steps.found) {
    add_more_than_usual(facts, 0, first - median, finding);
    finding.once = say("Once: the first step took {}, {} times the median of the others: start-up",
                       {ns(first), factor(first, median)});
    if (!finding.evidence.empty()) {
      append(finding.once, say(" ("));
      append(finding.once, finding.evidence.front().text);
      append(finding.once, say(")"));
    }
    append(finding.once, say(". Warm up before you measure."));
  }
  finding.try_next = {
      "do not count it in averages; give the profiler's schedule a warmup of a step or more",
      "run a few steps before measuring: libraries load kernels, pick algorithms and fill caches "
      "on first use"};
  finding.sample_count = whole_steps;
  finding.confidence = whole_steps >= 4 ? Confidence::kHigh : Confidence::kMedium;
  return finding;
}

}  // namespace

extern constinit const Rule slow_first_step_rule = {
    .id = "slow-first-step",
    .question = "why is the first step slow?",
    .order = 170,
    .needs = {kThreeWholeSteps},
    .run = measure_and_tell<measure_slow_first_step, tell_slow_first_step>,
    .covered_from = 0.5,  // what took most of the first step says it
};

}  // namespace lanescope::explain::rules
