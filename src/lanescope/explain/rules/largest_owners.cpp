// What takes the time of a step: the general part of an explanation, which appears even if no rule knows the
// fault.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "lanescope/explain/owner_advice.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/owner_mechanism.h"
#include "lanescope/explain/owner_words.h"
#include "lanescope/explain/owners.h"
#include "lanescope/explain/rules/arithmetic.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

using simulate::PathKind;

std::optional<const Owners*> measure_largest_owners(const Facts& facts) {
  const Owners* owners = step_owners(facts);
  if (!owners || owners->owners.empty()) return std::nullopt;
  return owners;
}

Sentence path_text(const Facts& facts, const Owners& owners) {
  const auto of = [&](PathKind kind) { return owners.time_ns[static_cast<std::size_t>(kind)]; };
  const bool is_of_gpu =
      of(PathKind::kCompute) + of(PathKind::kCommunication) + of(PathKind::kCopy) ==
      owners.total_ns;
  Sentence sum = say(facts,
                     is_of_gpu ? "the GPU's work, which decides the step without the profiler, {} "
                                 "[per step]:"
                               : "the critical path, {} [per step]:",
                     {ns(facts.per_step(owners.total_ns))});
  bool any = false;
  for (std::size_t i = 0; i < simulate::kPathKindCount; ++i) {
    if (owners.time_ns[i] == 0) continue;
    append(sum, say(any ? " + {} {}" : " {} {}",
                    {ns(facts.per_step(owners.time_ns[i])),
                     text(simulate::path_kind_text(static_cast<PathKind>(i)))}));
    any = true;
  }
  return sum;
}

// What a loop costs in each round, and what one call over all rounds would launch.
void add_loop(const Facts& facts, const Owner& owner, Finding& finding) {
  if (owner.kind != OwnerKind::kLoop || owner.rounds == 0) return;
  const auto rounds = static_cast<std::int64_t>(owner.rounds);
  Sentence text = owner_text(facts, owner);
  append(text, say(": {} per round", {ns(owner.total_ns / rounds)}));
  if (owner.work.launches >= owner.rounds)
    append(
        text,
        say(facts,
            "; {} [piece|pieces] of GPU work [per step]; one call over all rounds would launch {}",
            {count(owner.work.launches / step_count(facts)),
             count((owner.work.launches + owner.rounds - 1) / owner.rounds)}));
  finding.arithmetic.push_back(std::move(text));
}

Finding tell_largest_owners(const Facts& facts, const Owners* const& owners) {
  Finding finding;
  finding.kind = FindingKind::kWhere;
  const Owner& first = owners->owners.front();
  finding.verdict =
      say(facts, "{} of [a step's] time belongs to ", {ratio(first.total_ns, owners->total_ns)});
  append(finding.verdict, owner_sentence(facts, first));
  append(finding.verdict, say("."));
  finding.arithmetic.push_back(path_text(facts, *owners));
  for (const Owner& owner : owners->owners) {
    Sentence line = owner_text(facts, owner);
    append(line,
           say(facts, ": {} [per step] ({}); ",
               {ns(facts.per_step(owner.total_ns)), ratio(owner.total_ns, owners->total_ns)}));
    append(line, mechanism_text(facts, owner));
    finding.evidence.push_back({owner.example, std::move(line)});
    add_loop(facts, owner, finding);
    std::string more = record_more(facts, owner);
    if (!more.empty() &&
        std::find(finding.try_next.begin(), finding.try_next.end(), more) == finding.try_next.end())
      finding.try_next.push_back(std::move(more));
  }
  finding.action = advice_text(facts, first);
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  return finding;
}

}  // namespace

extern constinit const Rule largest_owners_rule = {
    .id = "largest-owners",
    .question = "what takes most of a step's time, and why?",
    .meant_by = "who owner part operator module loop time where",
    .order = 55,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_largest_owners, tell_largest_owners>,
};

}  // namespace lanescope::explain::rules
