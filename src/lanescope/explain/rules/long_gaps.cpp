#include "lanescope/explain/rules/long_gaps.h"

#include <string_view>
#include <unordered_set>
#include <vector>

#include "lanescope/analysis/gaps.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {
namespace {

// Longer waits are not launch overhead: the CPU did something else.
constexpr std::int64_t kLongHostGapNs = 500'000;

// Names of the operators, and of those around them, in which the steady steps' GPU work was launched.
std::unordered_set<std::string_view> launching_operators(const Facts& facts) {
  std::unordered_set<std::string_view> names;
  for (const analysis::DeviceWork* work : steady_work(facts))
    for (SliceId op = facts.links.op_of[raw(work->slice)]; op != kNone<SliceId>;
         op = facts.nesting.parent[raw(op)])
      if (facts.trace->kind(op) == CategoryKind::kCpuOp) names.insert(facts.trace->name(op));
  return names;
}

// A thread that loses its core in the middle of a launch leaves a long gap, too.
bool is_launching_in(const Facts& facts, const std::vector<analysis::Window>& gaps) {
  std::vector<HostStretch> stretches;
  for (const HostStretch& stretch : host_late_stretches(facts))
    if (inside(gaps, stretch.start_ns)) stretches.push_back(stretch);
  const auto launching = launching_operators(facts);
  std::int64_t in_launching_ns = 0, all_ns = 0;
  for (const HostShare& share : host_shares(facts, stretches)) {
    all_ns += share.time_ns;
    const bool is_launch = is_api_call(share.kind)
                               ? find_api_call(share.name).does(api_effect::kStartsKernels)
                               : share.kind == CategoryKind::kCpuOp &&
                                     share.longest != kNone<SliceId> &&
                                     launching.contains(facts.trace->name(share.longest));
    if (is_launch) in_launching_ns += share.time_ns;
  }
  return in_launching_ns * 2 > all_ns;
}

}  // namespace

LongGaps find_long_gaps(const Facts& facts) {
  LongGaps found;
  std::vector<analysis::Window> windows;
  for (const analysis::Gap& gap : facts.device().gaps.gaps) {
    if (gap.end_ns - gap.start_ns <= kLongHostGapNs || !inside(facts.steady_windows, gap.start_ns))
      continue;
    ++found.gap_count;
    windows.push_back({gap.start_ns, gap.end_ns});
    for (const analysis::IdlePart& part : facts.device().gaps.parts_of(gap))
      if (part.cause == analysis::IdleCause::kHostLate ||
          part.cause == analysis::IdleCause::kAfterSync)
        found.waiting_ns += part.end_ns - part.start_ns;
    if (!found.longest ||
        gap.end_ns - gap.start_ns > found.longest->end_ns - found.longest->start_ns)
      found.longest = &gap;
  }
  found.is_launching = !windows.empty() && is_launching_in(facts, windows);
  return found;
}

}  // namespace lanescope::explain::rules
