#include "lanescope/explain/happened_once.h"

#include <algorithm>
#include <cstdint>

#include "lanescope/base/wide.h"
#include "lanescope/explain/rule.h"

namespace lanescope::explain {
namespace {

int order_of(const Finding& finding) {
  const Rule* rule = find_rule(finding.rule);
  return rule ? rule->order : 0;
}

}  // namespace

Sentence happened_once(const Facts& facts, const Explanation& explanation,
                       const std::vector<Suggestion>& first) {
  // The start-up before iterations that were found is told in the headline.
  if (facts.selection.one_chosen || facts.steps.found) return {};
  for (const Suggestion& each : first)
    if (explanation.findings[each.finding].kind == FindingKind::kOnce) return {};
  const Finding* largest = nullptr;
  for (const Finding& finding : explanation.findings) {
    if (finding.kind != FindingKind::kOnce || finding.once.pattern.empty() ||
        finding.at_stake_ns <= facts.steady_wall_ns())
      continue;
    if (!largest || finding.at_stake_ns > largest->at_stake_ns) largest = &finding;
  }
  if (!largest) return {};
  const Finding* chosen = largest;
  for (const Finding& finding : explanation.findings)
    if (finding.kind == FindingKind::kOnce && !finding.once.pattern.empty() &&
        wide(finding.at_stake_ns) * 10 >= wide(largest->at_stake_ns) * 9 &&
        order_of(finding) < order_of(*chosen))
      chosen = &finding;
  return chosen->once;
}

}  // namespace lanescope::explain
