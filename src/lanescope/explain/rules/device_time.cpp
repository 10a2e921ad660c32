#include "lanescope/explain/rules/device_time.h"

#include <algorithm>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/facts_memo.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Window;

namespace {

std::vector<const DeviceWork*> make_steady_work(const Facts& facts) {
  std::vector<const DeviceWork*> works;
  if (!facts.main_device) return works;
  std::size_t at = 0;  // both are in order of time
  for (const DeviceWork& work : facts.device().timeline.work) {
    while (at < facts.steady_windows.size() && facts.steady_windows[at].end_ns <= work.start_ns)
      ++at;
    if (at == facts.steady_windows.size()) break;
    if (work.start_ns >= facts.steady_windows[at].start_ns) works.push_back(&work);
  }
  return works;
}

}  // namespace

const std::vector<const DeviceWork*>& steady_work(const Facts& facts) {
  return made_once<make_steady_work>(facts);
}

std::vector<const DeviceWork*> steady_work_launched_in(
    const Facts& facts, const std::vector<analysis::Window>& windows) {
  std::vector<const DeviceWork*> works;
  for (const DeviceWork* work : steady_work(facts)) {
    const SliceId launch = facts.links.launch_of[raw(work->slice)];
    if (launch != kNone<SliceId> && inside(windows, facts.trace->start_ns(launch)))
      works.push_back(work);
  }
  return works;
}

std::int64_t union_ns(const std::vector<const DeviceWork*>& works) {
  analysis::IntervalUnion all;
  for (const DeviceWork* work : works) all.add(work->start_ns, work->end_ns);
  all.finish();
  return all.length_ns();
}

std::int64_t device_idle_during(const Facts& facts, std::vector<Window> windows) {
  sort_rows(windows.begin(), windows.end(),
            [](const Window& a, const Window& b) { return a.start_ns < b.start_ns; });
  std::int64_t idle_ns = 0, covered = 0;
  for (Window window : windows) {
    if (covered > window.start_ns) window.start_ns = covered;
    if (window.end_ns <= window.start_ns) continue;
    covered = window.end_ns;
    const auto busy = facts.device().timeline.time_within(window.start_ns, window.end_ns);
    idle_ns += window.length_ns() - busy[0] - busy[1] - busy[2];
  }
  return idle_ns;
}

std::vector<Window> within_steady(const Facts& facts, const std::vector<Window>& windows) {
  std::vector<Window> parts;
  for (const Window& window : windows) {
    auto steady =
        std::upper_bound(facts.steady_windows.begin(), facts.steady_windows.end(), window.start_ns,
                         [](std::int64_t time, const Window& each) { return time < each.end_ns; });
    for (; steady != facts.steady_windows.end() && steady->start_ns < window.end_ns; ++steady)
      parts.push_back(
          {std::max(window.start_ns, steady->start_ns), std::min(window.end_ns, steady->end_ns)});
  }
  return parts;
}

std::int64_t launch_waits_within(const Facts& facts, std::int64_t start_ns, std::int64_t end_ns) {
  const IdleTimes idle = idle_within_steady(facts, {start_ns, end_ns});
  std::int64_t waits = 0;
  for (const auto cause : {analysis::IdleCause::kHostLate, analysis::IdleCause::kLaunchLatency,
                           analysis::IdleCause::kBetweenQueued})
    waits += idle[static_cast<std::size_t>(cause)];
  return waits;
}

std::int64_t total_length(std::vector<Window> windows) {
  sort_rows(windows.begin(), windows.end(),
            [](const Window& a, const Window& b) { return a.start_ns < b.start_ns; });
  std::int64_t total = 0, covered = windows.empty() ? 0 : windows[0].start_ns;
  for (const Window& window : windows) {
    total += std::max<std::int64_t>(0, window.end_ns - std::max(window.start_ns, covered));
    covered = std::max(covered, window.end_ns);
  }
  return total;
}

}  // namespace lanescope::explain::rules
