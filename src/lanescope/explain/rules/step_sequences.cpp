#include "lanescope/explain/rules/step_sequences.h"

#include <algorithm>

#include "lanescope/base/sort_rows.h"

namespace lanescope::explain::rules {

std::vector<StepSequence> step_sequences(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::vector<StepSequence> steps(facts.selection.steady.size());
  std::vector<std::vector<std::pair<std::int64_t, SliceId>>> order(steps.size());
  const auto& ranges = facts.steps.steps;
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId>) continue;
    const std::int64_t at = trace.start_ns(launch);
    const auto after = std::upper_bound(
        facts.selection.steady.begin(), facts.selection.steady.end(), at,
        [&](std::int64_t time, std::size_t i) { return time < ranges[i].cpu_start_ns; });
    if (after == facts.selection.steady.begin()) continue;
    const auto index = static_cast<std::size_t>(after - facts.selection.steady.begin()) - 1;
    if (at >= ranges[facts.selection.steady[index]].cpu_end_ns) continue;
    order[index].emplace_back(at, work.slice);
    analysis::Window& span = steps[index].launches;
    if (span.end_ns == 0) span.start_ns = at;
    span.start_ns = std::min(span.start_ns, at);
    span.end_ns = std::max(span.end_ns, trace.end_ns(launch));
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    sort_rows(order[i].begin(), order[i].end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [at, slice] : order[i]) {
      const ArgsView args = trace.slice_args(slice);
      std::uint64_t what = raw(trace.slices().name[raw(slice)]);
      for (const ArgKey key : {ArgKey::kGrid, ArgKey::kBlock, ArgKey::kBytes})
        what = what * 1'000'003 + (key == ArgKey::kBytes
                                       ? static_cast<std::uint64_t>(args.integer(key).value_or(-1))
                                       : raw(args.text(key).value_or(kNone<StringId>)));
      steps[i].works.emplace_back(at, what);
      steps[i].slices.push_back(slice);
    }
  }
  return steps;
}

std::size_t first_difference(const StepSequence& a, const StepSequence& b) {
  const std::size_t size = std::min(a.works.size(), b.works.size());
  for (std::size_t i = 0; i < size; ++i)
    if (a.works[i].second != b.works[i].second) return i;
  return size;
}

bool launch_the_same(const std::vector<StepSequence>& steps) {
  return steps.size() >= 2 &&
         std::all_of(steps.begin(), steps.end(), [&](const StepSequence& each) {
           return !each.works.empty() && each.works.size() == steps.front().works.size() &&
                  first_difference(each, steps.front()) == each.works.size();
         });
}

}  // namespace lanescope::explain::rules
