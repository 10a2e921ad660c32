// A loop asks each tensor whether it has a NaN or an infinity, and the CPU waits for each answer. A norm of all of them is finite only if
// each is, so one check does.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/host_syncs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr double kLeastCheckShare = 0.05;
constexpr std::uint64_t kFewestChecks = 16;  // in each step

bool looks_for_nan(std::string_view op) {
  return op == "aten::isnan" || op == "aten::isinf" || op == "aten::isfinite";
}
bool joins_answers(std::string_view op) { return op == "aten::any" || op == "aten::all"; }
bool reads_answer(std::string_view op) { return op == "aten::is_nonzero" || op == "aten::item"; }

struct FiniteChecks {
  std::vector<SliceId> calls;  // three of each check
  std::uint64_t checks = 0;
  SliceId first = kNone<SliceId>;  // the call that looks
  std::int64_t cost_ns = 0;
};

constexpr std::size_t kCallsOfCheck = 3;

// Where the checks of a sequence begin. Checks of activations, as hooks make them, have a layer between them: one norm of all gradients
// does not replace those. So a check counts only right after or right before another one.
std::vector<std::size_t> checks_in_a_loop(const Trace& trace, const CallSequence& calls) {
  std::vector<std::size_t> all, kept;
  for (std::size_t i = 0; i + 2 < calls.size(); ++i) {
    if (!looks_for_nan(trace.name(calls[i])) || !joins_answers(trace.name(calls[i + 1])) ||
        !reads_answer(trace.name(calls[i + 2])))
      continue;
    all.push_back(i);
    i += kCallsOfCheck - 1;
  }
  const auto is_right_before = [&](std::size_t at) {
    return all[at] + kCallsOfCheck == all[at + 1];
  };
  for (std::size_t i = 0; i < all.size(); ++i)
    if ((i > 0 && is_right_before(i - 1)) || (i + 1 < all.size() && is_right_before(i)))
      kept.push_back(all[i]);
  return kept;
}

std::optional<FiniteChecks> measure_finite_checks(const Facts& facts) {
  FiniteChecks found;
  for (const CallSequence& calls : call_sequences(facts))
    for (const std::size_t at : checks_in_a_loop(*facts.trace, calls)) {
      if (found.checks++ == 0) found.first = calls[at];
      found.calls.insert(found.calls.end(), {calls[at], calls[at + 1], calls[at + 2]});
    }
  if (found.checks < kFewestChecks * facts.selection.steady.size() || found.checks == 0)
    return std::nullopt;
  found.cost_ns = cost_of_spared(facts, found.calls);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastCheckShare) return std::nullopt;
  return found;
}

// What host-sync counts for the operators that read these answers, if they read hardly anything else.
std::int64_t waits_of_checks_ns(const Facts& facts, const FiniteChecks& found) {
  const auto waits = measure_host_sync(facts);
  const auto* syncs = std::get_if<HostSyncs>(&waits);
  if (!syncs) return 0;
  if (syncs->waits * 10 <= found.checks * 11) return syncs->at_stake_ns;
  std::int64_t time_ns = 0;
  for (const auto& [op, group] : syncs->ranked)
    if (reads_answer(op) && group.calls * 10 <= found.checks * 11) time_ns += group.cost_ns();
  return time_ns;
}

Finding tell_finite_checks(const Facts& facts, const FiniteChecks& found) {
  const Value op = name(facts.trace->name(found.first)), checks = count(found.checks),
              steps = count(facts.selection.steady.size());
  Finding finding;
  finding.verdict =
      say(facts,
          "A loop asks one tensor after the other for NaN or infinity ({}), and the CPU waits for "
          "each answer: {} [time|times] [in {} steps], {} [per step] ({}).",
          {op, checks, steps, ns(facts.per_step(found.cost_ns)),
           ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.sample_count = found.checks;
  finding.sample_noun = "check";
  std::vector<analysis::Window> windows;
  for (const SliceId call : found.calls)
    windows.push_back({facts.trace->start_ns(call), facts.trace->end_ns(call)});
  const LostTime lost = lost_in(facts, steady_parts(facts, joined(std::move(windows))));
  finding.waiting_ns = std::min(finding.at_stake_ns, facts.per_step(lost.waiting_for_cpu_ns));
  finding.spared_calls = found.calls;
  finding.arithmetic.push_back(say(
      "a check: {}, then any or all, then a read on the CPU; counted: the GPU work of these calls "
      "and the GPU's idle time during them. The one check that stays takes a part of it",
      {op}));
  finding.evidence.push_back(called_at(facts, found.first, say("the first check")));
  finding.try_next = {
      "check one number: torch.nn.utils.get_total_norm(gradients) is finite only if all of them "
      "are; clip_grad_norm_(..., error_if_nonfinite=True) raises by itself",
      "look for the tensor that is not finite only after that check has failed; or check every n "
      "steps"};
  finding.brief = say(
      facts, "Each tensor is asked for NaN or infinity by itself, {} [time|times] [in {} steps]",
      {checks, steps});
  finding.action =
      say("Check one norm of all: torch.nn.utils.get_total_norm(gradients), read once; or less "
          "often");
  finding.explains = {{"host-sync", facts.per_step(waits_of_checks_ns(facts, found))},
                      {"looped-calls", finding.at_stake_ns}};
  return finding;
}

}  // namespace

extern constinit const Rule finite_checks_rule = {
    .id = "finite-checks",
    .question = "is each tensor checked for NaN by itself?",
    .meant_by = "nan inf isnan isfinite check gradients loop",
    .order = 128,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_finite_checks, tell_finite_checks>,
    .fix = Fix::kCalls,
};

}  // namespace lanescope::explain::rules
