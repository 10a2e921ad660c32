// A loop adds up the rows of one group after the other: a comparison makes the mask of a group, an index takes its rows and waits for
// their number, and a sum or mean follows. Example: the new centres of k-means, prototypes of classes.
//
// Idea: aten::eq, aten::index with aten::nonzero in it, aten::sum or aten::mean, again and again in this order.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

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

bool takes_one_part(std::string_view op) {
  return op == "aten::select" || op == "aten::slice" || op == "aten::unbind" ||
         op == "aten::narrow";
}

struct GroupRound {
  SliceId mask{}, index{}, sum{};
  std::size_t first = 0, last = 0;  // calls
};

// The round that begins with this comparison; nothing: that is none.
std::optional<GroupRound> round_at(const Facts& facts, const std::vector<SliceId>& calls,
                                   std::size_t first) {
  const Trace& trace = *facts.trace;
  // A part of a tensor before the comparison: the rounds are over samples, each with a mask of its own.
  if (trace.name(calls[first]) != "aten::eq" ||
      (first > 0 && takes_one_part(trace.name(calls[first - 1]))))
    return std::nullopt;
  GroupRound round{.mask = calls[first], .first = first};
  bool has_index = false;
  std::size_t since = 0;
  for (std::size_t i = first + 1; i < calls.size() && since < kMostCallsToNext; ++i, ++since) {
    const std::string_view op = trace.name(calls[i]);
    if (op == "aten::eq" || (!has_index && takes_one_part(op))) return std::nullopt;
    if (!has_index && takes_by_mask(facts, calls[i])) {
      round.index = calls[i];
      has_index = true;
      since = 0;
    } else if (has_index && (op == "aten::mean" || op == "aten::sum")) {
      round.sum = calls[i];
      round.last = i;
      return round;
    }
  }
  return std::nullopt;
}

struct GroupLoop {
  std::vector<SliceId> calls;
  std::uint64_t rounds = 0;
  GroupRound first;
  std::int64_t cost_ns = 0;
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

std::optional<GroupLoop> measure_group_loop(const Facts& facts) {
  GroupLoop found;
  for (const std::vector<SliceId>& calls : calls_of_threads(facts)) {
    std::vector<GroupRound> rounds;
    const auto finish = [&] {
      if (rounds.size() >= kFewestGroupRounds) {
        if (found.rounds == 0) found.first = rounds.front();
        found.rounds += rounds.size();
        for (const GroupRound& round : rounds)
          found.calls.insert(found.calls.end(), {round.mask, round.index, round.sum});
      }
      rounds.clear();
    };
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!rounds.empty() && i - rounds.back().last > kLongestGroupPause) finish();
      const auto round = round_at(facts, calls, i);
      if (!round) continue;
      rounds.push_back(*round);
      i = round->last;
    }
    finish();
  }
  if (found.rounds == 0) return std::nullopt;
  found.cost_ns = cost_of_spared(facts, found.calls);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastGroupShare) return std::nullopt;
  return found;
}

Finding tell_group_loop(const Facts& facts, const GroupLoop& found) {
  const Trace& trace = *facts.trace;
  const Value sum = name(trace.name(found.first.sum)), rounds = count(found.rounds),
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
  finding.sample_count = found.rounds;
  finding.sample_noun = "round";
  finding.spared_calls = found.calls;
  finding.gain_is_bound = true;
  finding.arithmetic.push_back(say(
      "a round: aten::eq, aten::index with a mask (aten::nonzero), {}; counted: the GPU work of "
      "these calls and the GPU's idle time during them. What replaces them takes a part of it",
      {sum}));
  finding.evidence.push_back(called_at(facts, found.first.index, say("the first of these rounds")));
  finding.try_next = {
      "sums of all groups at once: torch.zeros(n, d).index_add_(0, group, x); means: divided by "
      "torch.bincount(group, minlength=n). Both read each row once and wait at most once",
      "for a maximum or a product of each group: scatter_reduce_"};
  finding.brief = say(facts,
                      "A loop adds up one group of rows after the other by a mask, {} "
                      "[time|times] [in {} steps]",
                      {rounds, steps});
  finding.action =
      say("All groups at once: zeros.index_add_(0, group, x), divided by "
          "bincount(group) for means");
  for (const char* covered : {"looped-calls", "equal-rounds", "tiny-kernels", "same-calls-twice",
                              "host-sync", "many-calls", "python-indexing", "graph-opportunity"})
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
