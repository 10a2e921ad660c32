// Functions under torch.compile that run uncompiled: Dynamo looks for compiled code in each call, finds none, and has stopped
// compiling.
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/uncompiled_code.h"

namespace lanescope::explain::rules {

namespace {

Measurement<UncompiledCode> measure_uncompiled_calls(const Facts& facts) {
  const UncompiledCode& found = find_uncompiled_code(facts);
  if (!found) return Quiet{};
  return found;
}

Finding tell_uncompiled_calls(const Facts& facts, const UncompiledCode& found) {
  const std::uint64_t steps = step_count(facts);
  Finding finding;
  finding.kind = FindingKind::kWhere;
  finding.verdict =
      say(facts,
          "Code under torch.compile runs uncompiled, {} [time|times] [per step]: TorchDynamo looks "
          "for its compiled code and finds none, and does not compile it.",
          {count(found.lookups / steps)});
  finding.arithmetic.push_back(
      say(facts,
          "lookups in the steady steps: {} without a compiled region after them, {} with one; the "
          "first take {} [per step]",
          {count(found.lookups), count(found.compiled), ns(facts.per_step(found.lookups_ns))}));
  finding.evidence.push_back(called_at(facts, found.longest, say("the longest such lookup")));
  finding.try_next = {
      "run with TORCH_LOGS=recompiles: it names the guard that fails until the recompile limit is "
      "reached",
      "keep what changes from call to call out of the function: a counter that is a Python number, "
      "a new list or object; use a tensor, or count outside",
      "raising torch._dynamo.config.recompile_limit only puts it off"};
  finding.brief = say(facts, "Code under torch.compile runs uncompiled, {} [time|times] [per step]",
                      {count(found.lookups / steps)});
  finding.action = say("Keep numbers that change out of it; TORCH_LOGS=recompiles names the guard");
  finding.confidence = facts.confidence();
  finding.sample_count = found.lookups;
  finding.sample_noun = "lookup";
  return finding;
}

}  // namespace

extern constinit const Rule uncompiled_calls_rule = {
    .id = "uncompiled-calls",
    .question = "does code under torch.compile run uncompiled?",
    .meant_by = "recompile limit",
    .order = 705,
    .run = measure_and_tell<measure_uncompiled_calls, tell_uncompiled_calls>,
};

}  // namespace lanescope::explain::rules
