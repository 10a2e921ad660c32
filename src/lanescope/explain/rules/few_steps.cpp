// Numbers per step that rest on one or two steps.
#include <algorithm>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

Outcome check_few_steps(const Facts& facts) {
  if (!facts.steps.marked || facts.one_step_chosen || facts.steady.size() >= 3) return Quiet{};
  const std::size_t all = facts.steps.steps.size() - facts.cut_steps.size();
  const char* as_a_whole = facts.cut_steps.empty() ? "" : " as a whole";
  const auto length = [&](std::size_t i) { return facts.step_window(facts.steady[i]).length_ns(); };
  // Two that agree within a tenth are few, but say what a step is like.
  if (facts.steady.size() == 2 &&
      std::max(length(0), length(1)) * 10 <= std::min(length(0), length(1)) * 11)
    return Quiet{};
  Finding finding;
  finding.kind = FindingKind::kTrust;
  if (all == 1)
    finding.verdict =
        say("Only one step was recorded{}: it may hold start-up work, and nothing tells whether it "
            "is a usual one.",
            {text(as_a_whole)});
  else if (facts.steady.size() < 2)
    finding.verdict =
        say("Only two steps were recorded{}, and the first is left out as start-up: every number "
            "per step rests on one.",
            {text(as_a_whole)});
  else
    finding.verdict =
        say("The only two{} steps behind the first one took {} and {}: which of them is a usual "
            "one cannot be told.",
            {text(facts.cut_steps.empty() ? "" : " whole"), ns(length(0)), ns(length(1))});
  finding.try_next = {
      "record five steps or more: schedule(wait=1, warmup=1, active=5), prof.step() after each"};
  finding.confidence = Confidence::kHigh;
  finding.sample_count = facts.steady.size();
  return finding;
}

}  // namespace

extern constinit const Rule few_steps_rule = {
    .id = "few-steps",
    .question = "were enough steps recorded?",
    .order = 290,
    .needs = {need::kAnyWork},
    .run = check_few_steps,
};

}  // namespace lanescope::explain::rules
