// One model runs several times in a row without gradients, with dropout on: how sure is it? What comes before the first dropout
// gives the same each time, if the input is the same.
//
// Problem: the trace does not show whether the rounds take one tensor. Idea: a model whose dropout is on without gradients, and
// whose rounds draw, choose and fetch nothing else, is nearly always sampled on one input; the advice names the condition.
// Example: 8 x (linear, relu, linear, dropout, linear, softmax) of the same modules: 7 x (linear, relu, linear) can go.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/analysis/repeats.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/call_symbols.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/needs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Repeat;

namespace {

constexpr double kLeastDropoutRoundsShare = 0.1;

bool is_layer_before_dropout(std::string_view op) {
  return op == "aten::linear" || op == "aten::matmul" || op == "aten::addmm" ||
         op.starts_with("aten::conv");
}

// The next round may depend on a value, or on a batch of its own.
bool changes_the_input(std::string_view op) {
  static constexpr std::string_view kChanging[] = {
      "aten::argmax",    "aten::multinomial", "aten::topk",        "aten::sort",  "aten::item",
      "aten::nonzero",   "aten::is_nonzero",  "aten::select",      "aten::slice", "aten::index",
      "aten::embedding", "aten::lift_fresh",  "aten::index_select"};
  return std::find(std::begin(kChanging), std::end(kChanging), op) != std::end(kChanging) ||
         op.ends_with("_cell") || op.find("rand") != op.npos ||
         op.starts_with("enumerate(DataLoader)") || op.starts_with(kEvaluateNode);
}

bool draws_dropout(const Facts& facts, SliceId op) {
  const std::string_view label = facts.trace->name(op);
  return label == "aten::native_dropout" ||
         (label.find("dropout") != label.npos && any_inside(facts, op, [](std::string_view name) {
            return name == "aten::native_dropout" || name == "aten::bernoulli_";
          }));
}

struct DropoutRounds {
  std::uint64_t loops = 0, rounds = 0;
  std::size_t trunk_calls = 0;               // of one round, in the longest loop
  std::unordered_set<std::uint32_t> spared;  // before the first dropout, in all rounds but one
  std::int64_t cost_ns = 0;
  SliceId first = kNone<SliceId>, dropout = kNone<SliceId>;
};

class DropoutRoundsFinder {
 public:
  explicit DropoutRoundsFinder(const Facts& facts) : facts_(facts), trace_(*facts.trace) {}

  DropoutRounds run() {
    const auto& sequences = call_sequences(facts_);
    const bool draws = std::any_of(sequences.begin(), sequences.end(), [&](const auto& calls) {
      return std::any_of(calls.begin(), calls.end(),
                         [&](SliceId op) { return draws_dropout(facts_, op); });
    });
    if (!draws) return {};
    for (const AutogradPair& pair : autograd_pairs(facts_))
      with_gradients_.insert(raw(pair.forward));
    for (const CallSequence& calls : sequences) find_in(calls);
    return std::move(found_);
  }

 private:
  void find_in(const CallSequence& calls) {
    // Outer loops come after those inside them.
    const std::vector<Repeat> repeats =
        analysis::find_repeats(call_symbols(trace_, calls, [](std::string_view) { return true; }));
    std::vector<bool> taken(repeats.size(), false);
    for (std::size_t r = repeats.size(); r-- > 0;) {
      taken[r] = (repeats[r].parent != Repeat::kNoRepeat && taken[repeats[r].parent]) ||
                 add(calls, repeats[r]);
    }
  }

  // False: these are no such rounds.
  bool add(const CallSequence& calls, const Repeat& repeat) {
    const std::size_t size = repeat.round_size();
    const auto call = [&](std::size_t round, std::size_t place) {
      return calls[repeat.first + round * size + place];
    };
    std::size_t trunk = 0, layers = 0;
    while (trunk < size && !draws_dropout(facts_, call(0, trunk)))
      layers += is_layer_before_dropout(trace_.name(call(0, trunk++))) ? 1 : 0;
    if (trunk == size || layers == 0) return false;
    for (std::size_t at = repeat.first; at < repeat.end; ++at)
      if (with_gradients_.contains(raw(calls[at])) || changes_the_input(trace_.name(calls[at])))
        return false;
    for (std::size_t place = 0; place < trunk; ++place) {
      if (!is_layer_before_dropout(trace_.name(call(0, place)))) continue;
      const std::string_view module = module_around(trace_, call(0, place));
      for (std::size_t round = 0; round < repeat.rounds; ++round)
        if (module.empty() || module_around(trace_, call(round, place)) != module) return false;
    }
    ++found_.loops;
    found_.rounds += repeat.rounds;
    for (std::size_t round = 1; round < repeat.rounds; ++round)
      for (std::size_t place = 0; place < trunk; ++place)
        found_.spared.insert(raw(call(round, place)));
    if (trunk > found_.trunk_calls) {
      found_.trunk_calls = trunk;
      found_.first = call(0, 0);
      found_.dropout = call(0, trunk);
    }
    return true;
  }

  const Facts& facts_;
  const Trace& trace_;
  std::unordered_set<std::uint32_t> with_gradients_;
  DropoutRounds found_;
};

std::optional<DropoutRounds> measure_dropout_rounds(const Facts& facts) {
  DropoutRounds found = DropoutRoundsFinder(facts).run();
  if (found.loops == 0) return std::nullopt;
  found.cost_ns = cost_of_calls(facts, found.spared);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastDropoutRoundsShare)
    return std::nullopt;
  return found;
}

Finding tell_dropout_rounds(const Facts& facts, const DropoutRounds& found) {
  const Value rounds = count(found.rounds / found.loops), calls = count(found.trunk_calls);
  Finding finding;
  finding.brief =
      say("One model runs {} times in a row with dropout on; before its first dropout lie {} calls",
          {rounds, calls});
  finding.verdict = finding.brief;
  append(finding.verdict,
         say(facts, ", which take {} [per step] ({}) in all rounds but one.",
             {ns(facts.per_step(found.cost_ns)), ratio(found.cost_ns, facts.steady_wall_ns())}));
  rate_cost(facts, found.cost_ns, found.spared.size(), finding);
  finding.arithmetic.push_back(
      say("counted: the calls of a round before its first dropout, in all rounds but the first; "
          "the rounds run the same modules with equal shapes and without gradients, and choose or "
          "fetch nothing"));
  finding.arithmetic.push_back(say("the trace does not show whether the rounds take one input"));
  finding.evidence.push_back(called_at(facts, found.first, say("the first call of a round")));
  finding.evidence.push_back(called_at(facts, found.dropout, say("its first dropout")));
  finding.action = say(
      "If the input is the same: run the part before the dropout once, and repeat only the rest");
  finding.try_next = {
      "call the part before the first dropout once and keep its result; repeat the rest, or repeat "
      "that result along the batch and run the rest once",
      "if the rounds take different inputs, or a round needs what the one before it made, this "
      "does not apply"};
  for (const char* covered : {"equal-rounds", "hotspot-kernel", "looped-calls", "memory-roof"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  return finding;
}

}  // namespace

extern constinit const Rule dropout_rounds_rule = {
    .id = "dropout-rounds",
    .question = "does a model with dropout run several times on one input?",
    .meant_by = "dropout monte carlo uncertainty samples trunk repeated forward same again",
    .order = 476,
    .needs = {need::kAnyWork},
    .only_if = has_marked_steps<1>,
    .run = measure_and_tell<measure_dropout_rounds, tell_dropout_rounds>,
};

}  // namespace lanescope::explain::rules
