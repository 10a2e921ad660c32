// A loop adds up the rows of one group after the other: a comparison makes the mask of a group, an index takes its rows and waits for
// their number, and a sum, mean or maximum follows. Example: the new centres of k-means, prototypes of classes, one vector for each
// graph of a batch.
//
// Idea: aten::eq, aten::index with aten::nonzero in it, aten::sum or aten::mean, again and again in this order.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/loop_sizes.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr double kLeastGroupShare = 0.1;
constexpr std::size_t kFewestGroupRounds = 16;  // rounds in a row
constexpr std::size_t kMostCallsToNext =
    3;  // from the mask to the index, and from there to the sum
constexpr std::size_t kLongestGroupPause = 12;  // calls from one round to the next

bool takes_by_mask(const Facts& facts, SliceId op) {
  return facts.trace->name(op) == "aten::index" &&
         any_inside(facts, op, [](std::string_view name) { return name == "aten::nonzero"; });
}

// The positions of a mask: where(mask) alone or nonzero(), from which a lookup takes its rows.
bool finds_rows(const Facts& facts, SliceId op) {
  const std::string_view label = facts.trace->name(op);
  return label == "aten::nonzero" || label == "aten::nonzero_numpy" ||
         (label == "aten::where" && any_inside(facts, op, [](std::string_view name) {
            return name.starts_with("aten::nonzero");
          }));
}

bool takes_one_part(std::string_view op) {
  return op == "aten::select" || op == "aten::slice" || op == "aten::unbind" ||
         op == "aten::narrow";
}

bool is_largest(std::string_view op) {
  return op == "aten::max" || op == "aten::min" || op == "aten::amax" || op == "aten::amin";
}

bool is_group_sum(std::string_view op) {
  return op == "aten::mean" || op == "aten::sum" || is_largest(op);
}

struct GroupRound {
  std::vector<SliceId> calls;  // the mask, its rows, what reduces them, and what joins the results
  SliceId index{};
  std::size_t first = 0, last = 0;  // calls
};

// Other reductions of the same rows, and the cat of their results.
void add_further_calls(const Trace& trace, const std::vector<SliceId>& calls, GroupRound& round) {
  std::size_t since = 0;
  for (std::size_t i = round.last + 1; i < calls.size() && since < kMostCallsToNext; ++i, ++since) {
    const std::string_view op = trace.name(calls[i]);
    if (op == "aten::eq") return;  // the next round
    if (!is_group_sum(op) && op != "aten::cat") continue;
    round.calls.push_back(calls[i]);
    round.last = i;
    since = 0;
    if (op == "aten::cat") return;
  }
}

// The round that begins with this comparison; nothing: that is none.
std::optional<GroupRound> round_at(const Facts& facts, const std::vector<SliceId>& calls,
                                   std::size_t first) {
  const Trace& trace = *facts.trace;
  // A part of a tensor before the comparison: the rounds are over samples, each with a mask of its own.
  if (trace.name(calls[first]) != "aten::eq" ||
      (first > 0 && takes_one_part(trace.name(calls[first - 1]))))
    return std::nullopt;
  GroupRound round{.calls = {calls[first]}, .first = first};
  bool has_positions = false, has_index = false;
  std::size_t since = 0;
  for (std::size_t i = first + 1; i < calls.size() && since < kMostCallsToNext; ++i, ++since) {
    const std::string_view op = trace.name(calls[i]);
    if (op == "aten::eq" || (!has_index && !has_positions && takes_one_part(op)))
      return std::nullopt;
    if (!has_index && !has_positions && finds_rows(facts, calls[i])) {
      round.calls.push_back(calls[i]);
      has_positions = true;
      since = 0;
    } else if (!has_index &&
               (takes_by_mask(facts, calls[i]) ||
                (has_positions && (op == "aten::index" || op == "aten::index_select")))) {
      round.calls.push_back(calls[i]);
      round.index = calls[i];
      has_index = true;
      since = 0;
    } else if (has_index && is_group_sum(op)) {
      round.calls.push_back(calls[i]);
      round.last = i;
      add_further_calls(trace, calls, round);
      return round;
    }
  }
  return std::nullopt;
}

struct GroupLoop {
  std::vector<SliceId> calls;  // with the nodes of their backward pass
  std::vector<SliceId> nodes;  // these alone, in order
  std::uint64_t rounds = 0;
  GroupRound first;
  SliceId sum = kNone<SliceId>;              // of the first round
  bool has_largest = false;                  // in it: a maximum or a minimum
  std::int64_t cost_ns = 0, waiting_ns = 0;  // waiting_ns: of it, the GPU is idle
};

// The calls of all steady steps by thread: where nothing marks steps, a round of the loop may be one.
std::vector<std::vector<SliceId>> calls_of_threads(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::vector<SliceId> all;
  for (const CallSequence& calls : call_sequences(facts))
    all.insert(all.end(), calls.begin(), calls.end());
  // Slices are in order of thread and start.
  sort_rows(all.begin(), all.end(), [](SliceId a, SliceId b) { return raw(a) < raw(b); });
  std::vector<std::vector<SliceId>> threads;
  for (const SliceId call : all) {
    if (threads.empty() ||
        trace.slices().track[raw(threads.back().back())] != trace.slices().track[raw(call)])
      threads.emplace_back();
    threads.back().push_back(call);
  }
  return threads;
}

// The backward passes of the rounds. That of x[mask] looks for the rows again, and waits again.
void add_group_nodes(const Facts& facts, GroupLoop& found) {
  std::unordered_set<std::uint32_t> calls;
  for (const SliceId call : found.calls) calls.insert(raw(call));
  for (const std::uint32_t each : with_backward_nodes(facts, calls))
    if (!calls.contains(each)) found.nodes.push_back(SliceId{each});
  sort_rows(found.nodes.begin(), found.nodes.end(),
            [](SliceId a, SliceId b) { return raw(a) < raw(b); });
  found.calls.insert(found.calls.end(), found.nodes.begin(), found.nodes.end());
}

std::optional<GroupLoop> measure_group_loop(const Facts& facts) {
  GroupLoop found;
  for (const std::vector<SliceId>& calls : calls_of_threads(facts)) {
    std::vector<GroupRound> rounds;
    const auto finish = [&] {
      if (rounds.size() >= kFewestGroupRounds) {
        if (found.rounds == 0) found.first = rounds.front();
        found.rounds += rounds.size();
        for (const GroupRound& round : rounds)
          found.calls.insert(found.calls.end(), round.calls.begin(), round.calls.end());
      }
      rounds.clear();
    };
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!rounds.empty() && (i - rounds.back().last > kLongestGroupPause ||
                              is_layer_operator(facts.trace->name(calls[i]))))
        finish();
      const auto round = round_at(facts, calls, i);
      if (!round) continue;
      rounds.push_back(*round);
      i = round->last;
    }
    finish();
  }
  if (found.rounds == 0) return std::nullopt;
  add_group_nodes(facts, found);
  for (const SliceId call : found.first.calls) {
    const std::string_view op = facts.trace->name(call);
    if (is_group_sum(op) && found.sum == kNone<SliceId>) found.sum = call;
    found.has_largest = found.has_largest || is_largest(op);
  }
  found.cost_ns = cost_of_spared(facts, found.calls);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastGroupShare) return std::nullopt;
  std::vector<Window> windows;
  for (const SliceId call : found.calls)
    windows.push_back({facts.trace->start_ns(call), facts.trace->end_ns(call)});
  found.waiting_ns = std::min(found.cost_ns, device_idle_during(facts, std::move(windows)));
  return found;
}

Finding tell_group_loop(const Facts& facts, const GroupLoop& found) {
  const Trace& trace = *facts.trace;
  const Value sum = name(trace.name(found.sum)), rounds = count(found.rounds),
              steps = count(facts.selection.steady.size());
  Finding finding;
  finding.verdict = say(
      facts,
      "A loop takes the rows of one group after the other by a mask, waits for their number and "
      "calls {}: {} [time|times] [in {} steps], {} [per step] ({}). Each round reads the groups of "
      "all rows again.",
      {sum, rounds, steps, ns(facts.per_step(found.cost_ns)),
       ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.waiting_ns = facts.per_step(found.waiting_ns);
  finding.sample_count = found.rounds;
  finding.sample_noun = "round";
  finding.spared_calls = found.calls;
  finding.gain_is_bound = true;
  finding.arithmetic.push_back(say(
      found.nodes.empty()
          ? "a round: aten::eq, an index that looks for the rows of the mask (aten::nonzero), {}; "
            "counted: the GPU work of these calls and the GPU's idle time during them. What "
            "replaces them takes a part of it"
          : "a round: aten::eq, an index that looks for the rows of the mask (aten::nonzero), {}; "
            "counted: the GPU work of these calls and of their backward passes, and the GPU's idle "
            "time during them. What replaces them takes a part of it",
      {sum}));
  finding.evidence.push_back(called_at(facts, found.first.index, say("the first of these rounds")));
  finding.try_next = {
      "sums of all groups at once: torch.zeros(n, d).index_add_(0, group, x); means: divided by "
      "torch.bincount(group, minlength=n). Both read each row once and wait at most once",
      "for a maximum of each group: torch.full((n, d), -inf).scatter_reduce(0, "
      "group[:, None].expand_as(x), x, \"amax\"), for a minimum inf and \"amin\"; both have a "
      "backward "
      "pass without waits"};
  finding.brief = say(facts,
                      "A loop adds up one group of rows after the other by a mask, {} "
                      "[time|times] [in {} steps]",
                      {rounds, steps});
  finding.action =
      found.has_largest
          ? say("All groups at once: zeros.index_add_(0, group, x) for sums and means, "
                "scatter_reduce(0, ...) for maxima and minima")
          : say("All groups at once: zeros.index_add_(0, group, x), divided by "
                "bincount(group) for means");
  if (!found.nodes.empty()) {
    finding.told_thread = trace.slices().track[raw(found.nodes.front())];
    for (const SliceId node : found.nodes)
      if (trace.slices().track[raw(node)] == finding.told_thread)
        finding.told_windows.push_back({trace.start_ns(node), trace.end_ns(node)});
  }
  for (const char* covered :
       {"looped-calls", "equal-rounds", "tiny-kernels", "same-calls-twice", "host-sync",
        "many-calls", "python-indexing", "graph-opportunity", "waiting-rounds", "slow-backward"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  return finding;
}

}  // namespace

extern constinit const Rule group_loop_rule = {
    .id = "group-loop",
    .question = "does a loop add up the rows of each group by a mask?",
    .meant_by = "kmeans cluster class prototype group mean mask loop scatter",
    .order = 127,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_group_loop, tell_group_loop>,
    .fix = Fix::kCalls,
    .fix_is_bound = true,
};

}  // namespace lanescope::explain::rules
