// A loop over groups, such as the clusters of k-means or the classes of a metric: each round finds the rows of one group by a mask
// (labels == k), waits for their number, and reduces them to one result.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/row_loops.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr double kLeastGroupShare = 0.1;
constexpr std::size_t kFewestGroupRounds = 8;
constexpr std::size_t kLongestMask = 3;         // calls from the comparison to the rows
constexpr std::size_t kLongestGroupRound = 12;  // calls
// Calls from one round to the next: a result is stored, or a group has no rows.
constexpr std::size_t kLongestGroupPause = 6;

bool finds_rows_by_mask(const Facts& facts, SliceId op) {
  const std::string_view name = facts.trace->name(op);
  if (name == "aten::masked_select") return true;
  return name == "aten::index" && any_inside(facts, op, [](std::string_view inner) {
           return inner.starts_with("aten::nonzero");
         });
}

bool reduces_rows(std::string_view op) {
  constexpr std::array<std::string_view, 14> kReductions = {
      "aten::mean",     "aten::sum",
      "aten::amax",     "aten::amin",
      "aten::max",      "aten::min",
      "aten::std",      "aten::var",
      "aten::norm",     "aten::prod",
      "aten::std_mean", "aten::var_mean",
      "aten::any",      "aten::linalg_vector_norm"};
  return std::find(kReductions.begin(), kReductions.end(), op) != kReductions.end();
}

std::optional<RowRound> group_round_at(const Facts& facts, const CallSequence& calls,
                                       std::size_t first) {
  if (facts.trace->name(calls[first]) != "aten::eq") return std::nullopt;
  std::optional<std::size_t> find;
  for (std::size_t i = first + 1; i < calls.size() && i <= first + kLongestGroupRound; ++i) {
    if (!find && i > first + kLongestMask) return std::nullopt;
    if (finds_rows_by_mask(facts, calls[i])) {
      if (find) return std::nullopt;
      find = i;
    } else if (find && reduces_rows(facts.trace->name(calls[i]))) {
      return RowRound{.first = first, .find = *find, .last = i};
    }
  }
  return std::nullopt;
}

std::optional<RowLoops> measure_loop_over_groups(const Facts& facts) {
  const auto found = measure_row_loops(
      facts, {.round_at = [&](const CallSequence& calls,
                              std::size_t first) { return group_round_at(facts, calls, first); },
              .fewest_rounds = kFewestGroupRounds,
              .longest_pause = kLongestGroupPause,
              .across_steps = true});
  if (!found || share_of(found->waiting_ns, facts.steady_wall_ns()) < kLeastGroupShare)
    return std::nullopt;
  return found;
}

Finding tell_loop_over_groups(const Facts& facts, const RowLoops& found) {
  const Trace& trace = *facts.trace;
  Finding finding;
  finding.verdict = say(
      facts,
      "A loop over {} groups: each round finds the rows of one group by a mask and waits for "
      "their number, then calls {}. In all rounds but one the GPU waits {} [per step] for the "
      "CPU.",
      {count(found.longest), name(trace.name(found.last)), ns(facts.per_step(found.waiting_ns))});
  finding.at_stake_ns = facts.per_step(found.waiting_ns);
  finding.at_stake_ratio = share_of(found.waiting_ns, facts.steady_wall_ns());
  finding.waiting_ns = finding.at_stake_ns;
  finding.confidence = facts.confidence();
  finding.sample_count = found.rounds;
  finding.sample_noun = "round";
  finding.arithmetic.push_back(say("a round: aten::eq, {}, and {}",
                                   {name(trace.name(found.find)), name(trace.name(found.last))}));
  finding.arithmetic.push_back(
      say("counted: the GPU's waits for the CPU from the second round of a loop to its end. That "
          "each round reads the numbers of all rows again is not counted"));
  finding.evidence.push_back(called_at(facts, found.find, say("the first round")));
  finding.try_next = {
      "sums and means of all groups in one call: torch.zeros(groups, columns).index_add_(0, "
      "labels, "
      "rows), divided by torch.bincount(labels, minlength=groups)",
      "largest or smallest values: scatter_reduce with \"amax\" or \"amin\""};
  finding.brief = say("A loop over {} groups: each round waits for the number of its rows",
                      {count(found.longest)});
  finding.action =
      say("Reduce all groups in one call: index_add_(0, labels, rows), and bincount(labels)");
  const std::int64_t at_stake_ns = finding.at_stake_ns;
  finding.explains = {{"looped-calls", at_stake_ns},
                      {"equal-rounds", at_stake_ns},
                      {"tiny-kernels", at_stake_ns},
                      {"same-calls-twice", at_stake_ns},
                      {"host-sync", facts.per_step(found.after_waits_ns)}};
  return finding;
}

}  // namespace

extern constinit const Rule loop_over_groups_rule = {
    .id = "loop-over-groups",
    .question = "does a loop reduce the rows of one group after the other?",
    .meant_by = "kmeans clusters classes groups labels mask mean loop index_add scatter",
    .order = 127,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_loop_over_groups, tell_loop_over_groups>,
    .fix = Fix::kCalls,
    .fix_is_bound = true,
};

}  // namespace lanescope::explain::rules
