// Numbers per step that rest on one or two steps.
#include <algorithm>
#include <optional>
#include <vector>

#include "lanescope/base/wide.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct FewSteps {
  std::size_t whole = 0;  // recorded as a whole, start-up and all
  std::vector<std::int64_t> steady_lengths_ns;
};

std::optional<FewSteps> measure_few_steps(const Facts& facts) {
  if (!facts.steps.marked || facts.selection.one_chosen || facts.selection.steady.size() >= 3)
    return std::nullopt;
  FewSteps found{.whole = facts.steps.steps.size() - facts.selection.cut().size(),
                 .steady_lengths_ns = {}};
  for (const std::size_t step : facts.selection.steady)
    found.steady_lengths_ns.push_back(facts.step_window(step).length_ns());
  const auto& lengths = found.steady_lengths_ns;
  // Two steps that agree within a tenth are few, but enough to know a usual step.
  if (lengths.size() == 2 &&
      wide(std::max(lengths[0], lengths[1])) * 10 <= wide(std::min(lengths[0], lengths[1])) * 11)
    return std::nullopt;
  return found;
}

Finding tell_few_steps(const Facts& facts, const FewSteps& found) {
  const char* as_a_whole = facts.selection.cut().empty() ? "" : " as a whole";
  const auto& lengths = found.steady_lengths_ns;
  Finding finding;
  finding.kind = FindingKind::kTrust;
  if (found.whole == 1)
    finding.verdict =
        say("Only one step was recorded{}: it may contain start-up work, and there is no other "
            "step to compare it with.",
            {text(as_a_whole)});
  else if (lengths.size() < 2)
    finding.verdict = say(facts,
                          "Only two steps were recorded{}, and the first is not counted because it "
                          "may be start-up: all numbers [per step] come from one step.",
                          {text(as_a_whole)});
  else if (facts.selection.turn > 0)
    finding.verdict =
        say("All numbers per step come from two steps of {} and {}: long and short steps seem to "
            "alternate, but too few were recorded to be sure.",
            {ns(lengths[0]), ns(lengths[1])});
  else
    finding.verdict =
        say("The only two{} steps after the first one took {} and {}: the trace does not show "
            "which of them is typical.",
            {text(facts.selection.cut().empty() ? "" : " whole"), ns(lengths[0]), ns(lengths[1])});
  finding.try_next = {
      "record five steps or more: schedule(wait=1, warmup=1, active=5), prof.step() after each"};
  finding.confidence = Confidence::kHigh;
  finding.sample_count = lengths.size();
  return finding;
}

}  // namespace

extern constinit const Rule few_steps_rule = {
    .id = "few-steps",
    .question = "were enough steps recorded?",
    .meant_by = "trust",
    .order = 290,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_few_steps, tell_few_steps>,
};

}  // namespace lanescope::explain::rules
