// The first recorded step takes longer than the others: warm-up, of the program or the recording.
#include <optional>

#include "lanescope/explain/left_out_steps.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

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
};

std::optional<SlowFirstStep> measure_slow_first_step(const Facts& facts) {
  const auto& steps = facts.steps.steps;
  std::vector<std::int64_t> lengths;
  const std::size_t whole = steps.size() - facts.selection.cut().size();  // cut steps come last
  for (std::size_t i = 0; i < whole; ++i) lengths.push_back(facts.step_window(i).length_ns());
  // Of iterations that were found, all that comes before those that are measured is start-up.
  const auto start_up = start_up_before_iterations(facts);
  const std::int64_t first = start_up ? start_up->length_ns() : lengths[0];
  const std::int64_t median = analysis::median_of_steps({lengths.begin() + 1, lengths.end()});
  if (median == 0 || first - median < 50'000 || first * 2 < median * 3) return std::nullopt;
  std::int64_t profiler = 0;
  if (facts.main_device && !start_up)
    profiler = facts.device().walls[0].idle_by(analysis::IdleCause::kProfiler);
  return SlowFirstStep{first, median, lengths.size(), profiler, profiler * 2 > first - median};
}

Finding tell_slow_first_step(const Facts& facts, const SlowFirstStep& measured) {
  const auto& [first, median, whole_steps, profiler, is_profiler] = measured;
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
  // What the CPU did while the profiler held it up would blame the innocent.
  if (!is_profiler && !facts.steps.found) add_more_than_usual(facts, 0, first - median, finding);
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
