// A long gap right after the first recorded work: the GPU did things that the recording missed.
#include <optional>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

std::optional<analysis::Gap> measure_edge_gap(const Facts& facts) {
  const analysis::Gap* gap = find_edge_gap(facts);
  return gap ? std::optional(*gap) : std::nullopt;
}

Finding tell_edge_gap(const Facts& facts, const analysis::Gap& gap) {
  const auto& part = facts.wall.partition;
  const std::int64_t gap_ns = gap.end_ns - gap.start_ns;
  Finding finding;
  finding.kind = FindingKind::kTrust;
  finding.verdict = say(
      "One gap of {} next to the first recorded work is {} of all idle time: the work that ended "
      "it had been launched long before, so the GPU was most likely busy with work that was not "
      "recorded.",
      {ns(gap_ns), ratio(gap_ns, part.idle_ns)});
  finding.at_stake_ns = gap_ns;
  finding.arithmetic.push_back(
      say("busy {} of the wall with the gap, {} without it",
          {ratio(part.busy_ns(), part.wall_ns), ratio(part.busy_ns(), part.wall_ns - gap_ns)}));
  finding.evidence.push_back(
      {gap.next_work, say("the gap ends with {}, launched {} earlier",
                          {kernel(facts.trace->name(gap.next_work)),
                           ns(gap.end_ns - facts.trace->start_ns(gap.launch))})});
  finding.try_next = {
      "do not count this gap as idle; start the recording earlier, or synchronize "
      "before it"};
  finding.confidence = Confidence::kMedium;
  finding.sample_count = 1;
  finding.sample_noun = "gap";
  return finding;
}

}  // namespace

extern constinit const Rule edge_gap_rule = {
    .id = "edge-gap",
    .question = "is the gap at the start of the recording real idle time?",
    .order = 200,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_edge_gap, tell_edge_gap>,
};

}  // namespace lanescope::explain::rules
