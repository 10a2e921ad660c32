// Libraries ask the driver how many blocks fit before they choose a launch.
#include <map>
#include <optional>
#include <utility>

#include "lanescope/analysis/launching_calls.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct OccupancyQueries {
  std::uint64_t queries = 0;
  std::uint64_t before_launch = 0;
  std::int64_t query_ns = 0;
  std::int64_t cpu_ns = 0;
  std::map<std::string_view, std::uint64_t> by_op;
  SliceId longest = kNone<SliceId>;
};

std::optional<OccupancyQueries> measure_occupancy_query(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto cpu = facts.steady_cpu_windows();
  std::uint64_t queries = 0, before_launch = 0;
  std::int64_t query_ns = 0;
  std::map<std::string_view, std::uint64_t> by_op;
  SliceId longest = kNone<SliceId>;
  const auto& columns = trace.slices();
  for (std::uint32_t i = 0; i < columns.size(); ++i) {
    const SliceId slice{i};
    if (!trace.api_call(slice).does(api_effect::kAsksOccupancy) ||
        !inside(cpu, trace.start_ns(slice)))
      continue;
    ++queries;
    query_ns += trace.dur_ns(slice);
    if (longest == kNone<SliceId> || trace.dur_ns(slice) > trace.dur_ns(longest)) longest = slice;
    // The next call of the thread that is no query, in the same operator.
    const SliceId op = facts.links.op_of[i];
    if (op != kNone<SliceId>) ++by_op[trace.name(op)];
    for (std::uint32_t k = i + 1; k < columns.size() && k < i + 16; ++k) {
      const SliceId next{k};
      if (columns.track[k] != columns.track[i]) break;
      if (!is_api_call(trace.kind(next)) || trace.api_call(next).does(api_effect::kAsksOccupancy))
        continue;
      before_launch +=
          facts.links.op_of[k] == op && analysis::launches_work(trace, facts.links, next) ? 1 : 0;
      break;
    }
  }
  if (queries < 3 || before_launch * 2 < queries) return std::nullopt;
  std::int64_t cpu_ns = 0;
  for (const auto& window : cpu) cpu_ns += window.end_ns - window.start_ns;
  return OccupancyQueries{queries, before_launch, query_ns, cpu_ns, std::move(by_op), longest};
}

Finding tell_occupancy_query(const Facts& facts, const OccupancyQueries& measured) {
  const auto& [queries, before_launch, query_ns, cpu_ns, by_op, longest] = measured;
  Finding finding;
  finding.kind = FindingKind::kNormal;
  finding.verdict = say(facts,
                        "The occupancy queries are a library choosing its launches: {} of {} come "
                        "directly before a launch; they cost {} of CPU time [per step].",
                        {count(before_launch), count(queries), ns(facts.per_step(query_ns))});
  std::vector<std::pair<std::string_view, std::uint64_t>> ranked(by_op.begin(), by_op.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  Evidence evidence{longest, say("the longest of them")};
  if (!ranked.empty())
    evidence.text = say("the longest of them; most come from {} ({})",
                        {name(ranked[0].first), count(ranked[0].second)});
  finding.evidence.push_back(std::move(evidence));
  if (share_of(query_ns, cpu_ns) > 0.05)
    finding.try_next = {
        "use CUDA graphs or fixed shapes: the queries take more than 5 % of the CPU's time"};
  else
    finding.try_next = {"leave them: they cost little and choose a better launch"};
  finding.confidence = facts.confidence();
  finding.sample_count = queries;
  finding.sample_noun = "query";
  return finding;
}

}  // namespace

extern constinit const Rule occupancy_query_rule = {
    .id = "occupancy-query",
    .question = "what is the occupancy query before a launch?",
    .order = 650,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_occupancy_query, tell_occupancy_query>,
    .only_on_request = true,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules
