#include "lanescope/explain/rules/rounds_of_inputs.h"

#include <string_view>
#include <unordered_set>

#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/batch_advice.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {
namespace {

bool is_view_of_input(std::string_view op) {
  return is_view(op) || op == "aten::unbind" || op == "aten::split" || op == "aten::chunk";
}

// The first upload of the sequence has a view right before it, and before that views, an operator that works on the GPU, or nothing.
bool takes_own_input(const Facts& facts, const CallSequence& calls,
                     const std::unordered_set<std::uint32_t>& uploading,
                     const std::unordered_set<std::uint32_t>& with_work) {
  const Trace& trace = *facts.trace;
  std::size_t upload = 0;
  while (upload < calls.size() && !uploading.contains(raw(calls[upload]))) ++upload;
  if (upload == calls.size() || upload == 0 || !is_view_of_input(trace.name(calls[upload - 1])))
    return false;
  std::size_t before = upload;
  while (before > 0 && is_view_of_input(trace.name(calls[before - 1]))) --before;
  return before == 0 || with_work.contains(raw(calls[before - 1]));
}

std::size_t count_rounds_of_inputs(const Facts& facts) {
  constexpr std::size_t kFewestRoundsOfInputs = 8;
  const auto windows = facts.steady_cpu_windows();
  if (!facts.main_device || !facts.steps.found || !works_on_batch(facts) ||
      facts.steps.found->ranges.size() < kFewestRoundsOfInputs || trains(facts, &windows))
    return 0;
  const std::unordered_set<std::uint32_t> uploading = uploading_operators(facts);
  std::unordered_set<std::uint32_t> with_work;
  for (const LaunchSequence& sequence : launch_sequences(facts))
    for (const LaunchedWork& each : sequence)
      if (const SliceId op = outermost_operator_of(facts, each.call); op != kNone<SliceId>)
        with_work.insert(raw(op));
  std::size_t rounds = 0;
  for (const CallSequence& calls : call_sequences(facts))
    rounds += takes_own_input(facts, calls, uploading, with_work) ? 1 : 0;
  return rounds * 10 >= facts.selection.steady.size() * 9 ? facts.steps.found->ranges.size() : 0;
}

}  // namespace

std::size_t rounds_of_inputs(const Facts& facts) {
  return made_once<count_rounds_of_inputs>(facts);
}

Sentence after_one_call_for_all(const Facts& facts, Sentence action) {
  const std::size_t rounds = rounds_of_inputs(facts);
  if (rounds == 0) return action;
  if (action.pattern.starts_with("Use ")) action.pattern.front() = 'u';
  Sentence all =
      say("If no round needs another's result: one call for a batch of all {} inputs; else ",
          {count(rounds)});
  append(all, action);
  return all;
}

}  // namespace lanescope::explain::rules
