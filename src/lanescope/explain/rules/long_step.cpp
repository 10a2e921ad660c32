// One step after the first took longer than all others together: numbers per step do not include
// it.
#include <map>
#include <optional>

#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/extra_work.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

// Compares the step with the mean of the steady steps. Adds the two kernels, copies or memsets with
// most additional time on the device, each a twentieth of `excess_ns` or more.
void add_device_work(const Facts& facts, std::size_t step, std::int64_t excess_ns,
                     Finding& finding) {
  const Trace& trace = *facts.trace;
  const analysis::Window& window = facts.device().windows[step];
  std::map<std::string_view, Named> more;
  std::map<std::string_view, std::int64_t> usual;
  for (const auto& work : facts.device().timeline.work) {
    const std::int64_t length = work.end_ns - work.start_ns;
    if (work.start_ns >= window.start_ns && work.start_ns < window.end_ns)
      more[trace.name(work.slice)].add(work.slice, length);
    else if (inside(facts.steady_windows, work.start_ns))
      usual[trace.name(work.slice)] += length;
  }
  std::vector<std::pair<std::string_view, Named>> ranked;
  for (auto& [label, named] : more) {
    named.time_ns -= facts.per_step(usual[label]);
    if (wide(named.time_ns) * 20 >= excess_ns) ranked.emplace_back(label, named);
  }
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.time_ns > b.second.time_ns; });
  for (std::size_t i = 0; i < ranked.size() && i < 2; ++i)
    finding.evidence.push_back(
        {ranked[i].second.longest, say("GPU: {} more than usual: {}, {} times in it",
                                       {ns(ranked[i].second.time_ns), kernel(ranked[i].first),
                                        count(ranked[i].second.count)})});
}

constexpr Need kFourMarkedSteps = {has_marked_steps<4>, "four steps or more (prof.step())"};
constexpr Need kAllSteps = {[](const Facts& facts) { return !facts.selection.one_chosen; },
                            "all steps (no --step)"};

struct LongStep {
  std::size_t step = 0;
  std::int64_t median = 0;
  std::int64_t length = 0;
  // The first step, which is left out as start-up, holds the same work: one step in so many does. 0: it does not.
  std::size_t every = 0;
};

// What the long step costs a step on average: of the steps until it comes again, else of those that were recorded.
std::int64_t mean_cost_ns(const Facts& facts, const LongStep& measured) {
  const std::size_t steps = measured.every > 0 ? measured.every : facts.selection.steady.size() + 1;
  return (measured.length - measured.median) / static_cast<std::int64_t>(steps);
}

std::optional<LongStep> measure_long_step(const Facts& facts) {
  if (!facts.selection.long_step) return std::nullopt;
  const std::size_t step = *facts.selection.long_step;
  const std::int64_t median = analysis::median_of_steps(facts.steady_lengths_ns());
  const std::int64_t length = facts.step_window(step).length_ns();
  const ExtraWork& work = extra_work_of_long_step(facts);
  return LongStep{step, median, length,
                  work && step > 0 && holds_extra_work(facts, work, 0) ? step : 0};
}

// A step that holds the calls of the others, in longer time.
void tell_held_up(const Facts& facts, const LongStep& measured, Finding& finding) {
  finding.verdict = say(
      facts,
      "Step {} took {}, the other {} {} (median) with the same calls: something held it up, and "
      "numbers [per step] do not include it.",
      {step_number(facts, measured.step), ns(measured.length), count(facts.selection.steady.size()),
       ns(measured.median)});
  finding.try_next = {
      "record more steps, to see whether it comes back: garbage collection, a log, another program "
      "on this machine; `lanescope record --sample-python` shows Python's part"};
}

// A step that does more than the others: what, how often, and what that costs.
void tell_extra_work(const Facts& facts, const LongStep& measured, const ExtraWork& work,
                     Finding& finding) {
  const Value others = count(facts.selection.steady.size());
  Sentence what = measured.every > 0
                      ? say("Steps {} and {} take much longer ({}) than the other {} ({}): ",
                            {step_number(facts, 0), step_number(facts, measured.step),
                             ns(measured.length), others, ns(measured.median)})
                      : say("Step {} took {}, the other {} {} (median): ",
                            {step_number(facts, measured.step), ns(measured.length), others,
                             ns(measured.median)});
  append(what, words_of(facts, work));
  finding.verdict = what;
  append(finding.verdict, say(facts, ". Numbers [per step] do not include it."));
  finding.brief = std::move(what);
  const std::int64_t mean_ns = mean_cost_ns(facts, measured);
  append(finding.brief, measured.every > 0
                            ? say("; one in {}: {} per step", {count(measured.every), ns(mean_ns)})
                            : say("; {} per step, averaged", {ns(mean_ns)}));
  finding.arithmetic.push_back(
      measured.every > 0
          ? say("the first step holds the same work, so one step in {} does: {} more for it is {} "
                "per step on average",
                {count(measured.every), ns(finding.at_stake_ns), ns(mean_ns)})
          : say("over the {} steps after the first, {} more for it is {} per step on average",
                {count(facts.selection.steady.size() + 1), ns(finding.at_stake_ns), ns(mean_ns)}));
  finding.evidence.insert(finding.evidence.begin(),
                          called_at(facts, work.example, say("the first of this work")));
  finding.action = remedy_of(work);
  finding.try_next = ways_out_of(work);
}

Finding tell_long_step(const Facts& facts, const LongStep& measured) {
  const auto& [step, median, length, every] = measured;
  Finding finding;
  finding.kind = FindingKind::kOnce;
  finding.verdict =
      say(facts,
          "Step {} took {}, longer than the other {} together (median {}): numbers [per step] do "
          "not include it.",
          {step_number(facts, step), ns(length), count(facts.selection.steady.size()), ns(median)});
  finding.at_stake_ns = length - median;
  if (facts.main_device) {
    const std::int64_t idle = facts.device().walls[step].partition.idle_ns;
    finding.arithmetic.push_back(
        say("in it the GPU was idle for {} and worked for {}", {ns(idle), ns(length - idle)}));
  }
  add_more_than_usual(facts, step, length - median, finding);
  if (facts.main_device) add_device_work(facts, step, length - median, finding);
  if (finding.evidence.empty())
    finding.evidence.push_back({facts.steps.steps[step].slice, say("the step")});
  finding.try_next = {
      "warm up before recording if it happens once (a first use, a new size); record more steps if "
      "it may repeat (a checkpoint, an evaluation): then it is a part of the usual cost"};
  finding.sample_count = facts.selection.steady.size() + 1;
  finding.confidence = facts.selection.steady.size() >= 5 ? Confidence::kHigh : Confidence::kMedium;
  if (facts.selection.is_held_up) {
    tell_held_up(facts, measured, finding);
    return finding;
  }
  if (const ExtraWork& work = extra_work_of_long_step(facts)) {
    tell_extra_work(facts, measured, work, finding);
    return finding;
  }
  finding.brief = say("Step {} took {}, longer than the other {} together",
                      {step_number(facts, step), ns(length), count(facts.selection.steady.size())});
  finding.action =
      say("See what this step did more than others: lanescope explain --full --step {}",
          {step_number(facts, step)});
  return finding;
}

}  // namespace

extern constinit const Rule long_step_rule = {
    .id = "long-step",
    .question = "did one step take longer than all others?",
    .order = 180,
    .needs = {need::kAnyWork, kFourMarkedSteps, kAllSteps},
    .run = measure_and_tell<measure_long_step, tell_long_step>,
    .is_about_long_step = true,
    .is_about_single_steps = true,
};

}  // namespace lanescope::explain::rules
