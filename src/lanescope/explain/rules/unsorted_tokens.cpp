// A loop over the experts of a mixture: each round looks for the tokens of one expert, waits for their number, multiplies them by the
// weights of that expert, and adds the results to the output.
//
// Idea: these calls in a row are seldom anything else: aten::nonzero (or aten::where of a mask alone), an index, two products or more
// (the layers of an expert), aten::index_add_ or another write by index. Four such rounds or more are a loop.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/products.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/row_loops.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr double kLeastExpertShare = 0.1;
constexpr std::size_t kFewestExperts = 4;
constexpr std::size_t kFewestExpertProducts = 2;  // of one expert
constexpr std::size_t kLongestExpertRound = 64;   // calls
constexpr std::size_t kLongestPause = 24;         // calls from one round to the next

// These wait for the number of the positions that they find. aten::where does so with a mask alone.
bool finds_tokens(const Facts& facts, SliceId op) {
  const std::string_view name = facts.trace->name(op);
  if (name == "aten::where")
    return any_inside(facts, op,
                      [](std::string_view inner) { return inner.starts_with("aten::nonzero"); });
  return name == "aten::nonzero" || name == "aten::nonzero_numpy" || name == "aten::argwhere";
}

bool takes_by_index(std::string_view op) {
  return op == "aten::index" || op == "aten::index_select";
}

bool writes_by_index(std::string_view op) {
  return op == "aten::index_add_" || op == "aten::index_add" || op == "aten::index_put_" ||
         op == "aten::index_copy_" || op == "aten::scatter_add_";
}

std::optional<RowRound> expert_round_at(const Facts& facts, const CallSequence& calls,
                                        std::size_t first) {
  if (!finds_tokens(facts, calls[first])) return std::nullopt;
  bool has_tokens = false;
  std::size_t products = 0;
  for (std::size_t i = first + 1; i < calls.size() && i <= first + kLongestExpertRound; ++i) {
    const std::string_view op = facts.trace->name(calls[i]);
    if (finds_tokens(facts, calls[i])) return std::nullopt;
    if (takes_by_index(op)) has_tokens = true;
    if (is_product(op) && has_tokens) ++products;
    if (!writes_by_index(op)) continue;
    if (products < kFewestExpertProducts) return std::nullopt;
    return RowRound{.first = first, .find = first, .last = i};
  }
  return std::nullopt;
}

// Experts without a token have no round.
std::optional<RowLoops> measure_unsorted_tokens(const Facts& facts) {
  const auto found = measure_row_loops(
      facts, {.round_at = [&](const CallSequence& calls,
                              std::size_t first) { return expert_round_at(facts, calls, first); },
              .fewest_rounds = kFewestExperts,
              .longest_pause = kLongestPause});
  if (!found || share_of(found->waiting_ns, facts.steady_wall_ns()) < kLeastExpertShare)
    return std::nullopt;
  return found;
}

Finding tell_unsorted_tokens(const Facts& facts, const RowLoops& found) {
  const Trace& trace = *facts.trace;
  const auto steps = std::max<std::uint64_t>(1, facts.selection.steady.size());
  const Value experts = count(found.longest),
              loops = count(std::max<std::uint64_t>(1, found.loops / steps));
  Finding finding;
  finding.verdict = say(
      facts,
      "A loop over {} experts runs {} [time|times] [per step]: each round finds the tokens of one "
      "expert and waits for their number. In all rounds but one the GPU waits {} [per step] for "
      "the CPU.",
      {experts, loops, ns(facts.per_step(found.waiting_ns))});
  finding.at_stake_ns = facts.per_step(found.waiting_ns);
  finding.at_stake_ratio = share_of(found.waiting_ns, facts.steady_wall_ns());
  finding.waiting_ns = finding.at_stake_ns;
  finding.confidence = facts.confidence();
  finding.sample_count = found.rounds;
  finding.sample_noun = "round";
  finding.arithmetic.push_back(say("a round: {}, an index, two products or more, and {}",
                                   {name(trace.name(found.find)), name(trace.name(found.last))}));
  finding.arithmetic.push_back(
      say("counted: the GPU's waits for the CPU from the second round of a loop to its end, and in "
          "the backward passes of these calls. The products' own time stays"));
  finding.evidence.push_back(called_at(facts, found.find, say("the first round")));
  finding.try_next = {
      "sort the tokens by expert once (topk, sort, bincount, cumsum on the GPU), then call one "
      "grouped product per layer: torch._grouped_mm, or a library for mixtures of experts",
      "or give each expert room for the same number of tokens (a capacity): one torch.bmm per "
      "layer, and no size that the CPU must know"};
  finding.brief =
      say(facts,
          "A loop over {} experts, {} [time|times] [per step]: each round waits for the "
          "number of its tokens",
          {experts, loops});
  finding.action =
      say("Sort the tokens by expert: torch._grouped_mm, or torch.bmm with equal room for each");
  const std::int64_t at_stake_ns = finding.at_stake_ns;
  finding.explains = {{"looped-calls", at_stake_ns},
                      {"equal-rounds", at_stake_ns},
                      {"tiny-kernels", at_stake_ns},
                      {"same-calls-twice", at_stake_ns},
                      {"host-sync", facts.per_step(found.after_waits_ns)}};
  return finding;
}

}  // namespace

extern constinit const Rule unsorted_tokens_rule = {
    .id = "unsorted-tokens",
    .question = "does a loop over experts look for the tokens of each?",
    .meant_by = "mixture experts moe loop tokens router grouped",
    .order = 126,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_unsorted_tokens, tell_unsorted_tokens>,
    .fix = Fix::kCalls,
    .fix_is_bound = true,
};

}  // namespace lanescope::explain::rules
