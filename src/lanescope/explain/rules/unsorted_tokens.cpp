// A loop over the experts of a mixture: each round looks for the tokens of one expert, waits for their number, multiplies them by the
// weights of that expert, and adds the results to the output.
//
// Idea: these calls in a row are seldom anything else: aten::nonzero (or aten::where of a mask alone), an index, two products or more
// (the layers of an expert), aten::index_add_ or another write by index. Four such rounds or more are a loop.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/loop_sizes.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/products.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

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

bool is_other_layer(std::string_view op) {
  return is_layer_operator(op) || op.starts_with("aten::scaled_dot_product_attention");
}

// The index of the call that ends the round which begins with calls[first]; nothing: that is no round.
std::optional<std::size_t> end_of_round(const Facts& facts, const CallSequence& calls,
                                        std::size_t first) {
  bool has_tokens = false;
  std::size_t products = 0;
  for (std::size_t i = first + 1; i < calls.size() && i <= first + kLongestExpertRound; ++i) {
    const std::string_view op = facts.trace->name(calls[i]);
    if (finds_tokens(facts, calls[i])) return std::nullopt;
    if (takes_by_index(op)) has_tokens = true;
    if (is_product(op) && has_tokens) ++products;
    if (writes_by_index(op))
      return products >= kFewestExpertProducts ? std::optional(i) : std::nullopt;
  }
  return std::nullopt;
}

struct Round {
  std::size_t first = 0, last = 0;  // calls
};

// The loops of one sequence, with four rounds or more each. Experts without a token have no round.
std::vector<std::vector<Round>> expert_loops(const Facts& facts, const CallSequence& calls) {
  std::vector<std::vector<Round>> loops;
  std::vector<Round> rounds;
  const auto finish = [&] {
    if (rounds.size() >= kFewestExperts) loops.push_back(rounds);
    rounds.clear();
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!rounds.empty() && i - rounds.back().last > kLongestPause) finish();
    // Between two loops there are other layers: a norm, attention, the products of the next router.
    if (is_other_layer(facts.trace->name(calls[i]))) finish();
    if (!finds_tokens(facts, calls[i])) continue;
    const auto end = end_of_round(facts, calls, i);
    if (!end) continue;
    rounds.push_back({i, *end});
    i = *end;
  }
  finish();
  return loops;
}

struct UnsortedTokens {
  std::uint64_t loops = 0, rounds = 0, experts = 0;  // experts: of the longest loop
  std::int64_t waiting_ns = 0;      // in all rounds but a loop's first, with their backward passes
  std::int64_t after_waits_ns = 0;  // what the GPU waits in and after the calls that find tokens
  SliceId find = kNone<SliceId>, write = kNone<SliceId>;
  TrackId nodes_thread = kNone<TrackId>;  // one thread runs the backward pass of a device
  std::vector<Window> nodes;              // the backward passes of these calls, any order
};

std::optional<UnsortedTokens> measure_unsorted_tokens(const Facts& facts) {
  const Trace& trace = *facts.trace;
  UnsortedTokens found;
  std::vector<Window> later, finding, others;
  std::unordered_set<std::uint32_t> later_calls;
  for (const CallSequence& calls : call_sequences(facts))
    for (const std::vector<Round>& rounds : expert_loops(facts, calls)) {
      ++found.loops;
      found.rounds += rounds.size();
      if (rounds.size() > found.experts) {
        found.experts = rounds.size();
        found.find = calls[rounds.front().first];
        found.write = calls[rounds.front().last];
      }
      const std::int64_t end_ns = trace.end_ns(calls[rounds.back().last]);
      later.push_back({trace.start_ns(calls[rounds[1].first]), end_ns});
      for (std::size_t i = rounds[1].first; i <= rounds.back().last; ++i)
        later_calls.insert(raw(calls[i]));
      for (const Round& round : rounds) {
        const SliceId find = calls[round.first];
        finding.push_back({trace.start_ns(find), trace.end_ns(find)});
        others.push_back({trace.end_ns(find), trace.end_ns(calls[round.last])});
      }
    }
  if (found.loops == 0) return std::nullopt;
  for (const std::uint32_t node : with_backward_nodes(facts, later_calls))
    if (!later_calls.contains(node)) {
      later.push_back({trace.start_ns(SliceId{node}), trace.end_ns(SliceId{node})});
      found.nodes_thread = trace.slices().track[node];
      found.nodes.push_back(later.back());
    }
  const auto lost = [&](std::vector<Window> windows) {
    return lost_in(facts, steady_parts(facts, joined(std::move(windows))));
  };
  found.waiting_ns = lost(std::move(later)).waiting_for_cpu_ns;
  if (share_of(found.waiting_ns, facts.steady_wall_ns()) < kLeastExpertShare) return std::nullopt;
  found.after_waits_ns =
      lost(std::move(finding)).waiting_for_cpu_ns + lost(std::move(others)).after_waits_ns;
  return found;
}

Finding tell_unsorted_tokens(const Facts& facts, const UnsortedTokens& found) {
  const Trace& trace = *facts.trace;
  const auto steps = std::max<std::uint64_t>(1, facts.selection.steady.size());
  const Value experts = count(found.experts),
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
                                   {name(trace.name(found.find)), name(trace.name(found.write))}));
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
  finding.told_thread = found.nodes_thread;
  finding.told_windows = joined(found.nodes);
  const std::int64_t at_stake_ns = finding.at_stake_ns;
  finding.explains = {
      {"looped-calls", at_stake_ns},   {"equal-rounds", at_stake_ns},
      {"tiny-kernels", at_stake_ns},   {"same-calls-twice", at_stake_ns},
      {"waiting-rounds", at_stake_ns}, {"host-sync", facts.per_step(found.after_waits_ns)}};
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
