// Why the CPU totals of operators add up to more time than there is: a total includes what the
// operator called, Self does not.
#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

struct OpTimes {
  std::int64_t total_ns = 0, self_ns = 0;
  std::uint64_t calls = 0;
  SliceId longest = kNone<SliceId>;
  std::map<std::string_view, std::int64_t> children;  // by name, of any kind
};

// Below this factor, double counting does not mislead.
constexpr double kLeastFactor = 1.2;
constexpr std::size_t kMostChildren = 3;

struct SelfTotal {
  std::string_view label;
  OpTimes times;
  std::int64_t totals_ns = 0;
  std::int64_t once_ns = 0;
};

Measurement<SelfTotal> measure_self_total(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.main_device ? facts.steady_cpu_windows() : facts.steady_windows;
  const analysis::SliceNesting& nesting = facts.nesting;
  const auto is_op = [&](SliceId slice) { return trace.kind(slice) == CategoryKind::kCpuOp; };
  std::map<std::string_view, OpTimes> by_name;
  std::int64_t totals_ns = 0, once_ns = 0;
  std::vector<bool> in_op(nesting.parent.size());  // an operator is above it; parents come first
  for (std::uint32_t i = 0; i < nesting.parent.size(); ++i) {
    const SliceId slice{i}, parent = nesting.parent[i];
    if (parent != kNone<SliceId>) in_op[i] = in_op[raw(parent)] || is_op(parent);
    const std::int64_t time_ns = trace.dur_ns(slice);
    if (parent != kNone<SliceId> && is_op(parent) && inside(windows, trace.start_ns(parent)))
      by_name[trace.name(parent)].children[trace.name(slice)] += time_ns;
    if (!is_op(slice) || !inside(windows, trace.start_ns(slice))) continue;
    totals_ns += time_ns;
    if (!in_op[i]) once_ns += time_ns;
    OpTimes& times = by_name[trace.name(slice)];
    times.total_ns += time_ns;
    times.self_ns += nesting.self_ns[i];
    ++times.calls;
    if (times.longest == kNone<SliceId> || time_ns > trace.dur_ns(times.longest))
      times.longest = slice;
  }
  if (once_ns == 0) return NotChecked{"operators of the CPU (ProfilerActivity.CPU)"};
  if (static_cast<double>(totals_ns) < kLeastFactor * static_cast<double>(once_ns)) return Quiet{};
  const auto most =
      std::max_element(by_name.begin(), by_name.end(), [](const auto& a, const auto& b) {
        return a.second.total_ns - a.second.self_ns < b.second.total_ns - b.second.self_ns;
      });
  return SelfTotal{most->first, most->second, totals_ns, once_ns};
}

Finding tell_self_total(const Facts& facts, const SelfTotal& measured) {
  const auto& [label, times, totals_ns, once_ns] = measured;
  Finding finding;
  finding.kind = FindingKind::kNormal;
  finding.verdict = say(
      facts,
      "Total time includes what the row called, Self does not: {} takes {} in total [per step], {} "
      "of it itself. The totals of all operators add up to {}, {} times the {} that threads "
      "were in operators at all.",
      {name(label), ns(facts.per_step(times.total_ns)), ns(facts.per_step(times.self_ns)),
       ns(facts.per_step(totals_ns)), factor(totals_ns, once_ns), ns(facts.per_step(once_ns))});
  std::vector<std::pair<std::string_view, std::int64_t>> children(times.children.begin(),
                                                                  times.children.end());
  sort_rows(children.begin(), children.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  Sentence sum = say("{} = itself {}",
                     {ns(facts.per_step(times.total_ns)), ns(facts.per_step(times.self_ns))});
  std::int64_t others_ns = 0;
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (i >= kMostChildren)
      others_ns += children[i].second;
    else
      append(sum,
             say(" + {} {}", {name(children[i].first), ns(facts.per_step(children[i].second))}));
  }
  if (others_ns > 0) append(sum, say(" + others {}", {ns(facts.per_step(others_ns))}));
  finding.arithmetic.push_back(std::move(sum));
  finding.evidence.push_back({times.longest, say("the longest {}", {name(label)})});
  finding.try_next = {
      "add up and compare Self: each moment counts once (lanescope table --sort-by "
      "self_cpu_time_total)",
      "read a total to see what a call costs with all that it calls (lanescope tree shows what)"};
  finding.confidence = facts.confidence();
  finding.sample_count = times.calls;
  finding.sample_noun = "call";
  return finding;
}

}  // namespace

extern constinit const Rule self_total_rule = {
    .id = "self-total",
    .question = "what is the difference between Self and total time?",
    .meant_by = "self",
    .order = 900,
    .run = measure_and_tell<measure_self_total, tell_self_total>,
    .only_on_request = true,
};

}  // namespace lanescope::explain::rules
