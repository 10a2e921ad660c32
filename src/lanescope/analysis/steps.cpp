// Problem: the CPU's step ranges say when work was launched, not when it ran. In a GPU-bound loop
// they are too short, and much work runs after the last one. Idea: move each boundary to the moment
// when the device has finished the work launched before it. Example: steps at 0, 10, 20; a kernel
// launched at 1 runs [2, 40), one launched at 11 runs [40, 80) -> the device windows are [0, 40),
// [40, 80), ... If the device waits for the CPU, the boundaries stay where they are.
#include "lanescope/analysis/steps.h"
#include "lanescope/analysis/launching_calls.h"
#include "lanescope/base/wide.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace lanescope::analysis {
namespace {

// The end of the operators that begin after the last device work, if they take a tenth of the recording or more: results may be
// worked on there. `last_work_ns` if they take less, or if launches follow whose work was not recorded.
std::int64_t end_of_later_operators(const Trace& trace, std::int64_t start_ns,
                                    std::int64_t last_work_ns) {
  constexpr std::int64_t kLeastPart = 10;
  std::int64_t end_ns = last_work_ns, sum_ns = 0;
  std::unordered_map<std::uint32_t, std::int64_t> end_of_track;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.start_ns(id) < last_work_ns) continue;
    if (is_api_call(trace.kind(id)) &&
        trace.api_call(id).does(api_effect::kLaunchesKernel | api_effect::kLaunchesGraph))
      return last_work_ns;
    if (trace.kind(id) != CategoryKind::kCpuOp) continue;
    std::int64_t& end_of_last =
        end_of_track.try_emplace(raw(trace.slices().track[i]), last_work_ns).first->second;
    if (trace.start_ns(id) < end_of_last) continue;
    end_of_last = trace.end_ns(id);
    sum_ns += trace.dur_ns(id);
    end_ns = std::max(end_ns, end_of_last);
  }
  return wide(sum_ns) * kLeastPart >= end_ns - start_ns ? end_ns : last_work_ns;
}

// With device work: from the first launch call (or, without calls, the first work) to the end of
// the last work or of much work of the CPU after it; CPU work before says nothing about a step. Else from the first operator,
// annotation or API call to the last end of these.
StepRange whole_range(const Trace& trace, const LaunchLinks& links) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::int64_t first_launch = kNever, first_work = kNever, last_work = -kNever;
  std::int64_t first_call = kNever, last_call = -kNever;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    const CategoryKind kind = trace.kind(id);
    if (is_device_work(kind)) {
      first_work = std::min(first_work, trace.start_ns(id));
      last_work = std::max(last_work, trace.end_ns(id));
    } else if (is_front_end(kind) || is_api_call(kind)) {
      first_call = std::min(first_call, trace.start_ns(id));
      last_call = std::max(last_call, trace.end_ns(id));
      if (launches_work(trace, links, id))
        first_launch = std::min(first_launch, trace.start_ns(id));
    }
  }
  StepRange range;
  range.cpu_start_ns = first_launch != kNever ? first_launch
                       : first_work != kNever ? first_work
                                              : first_call;
  range.cpu_end_ns = first_work != kNever ? last_work : last_call;
  if (first_work != kNever)
    range.cpu_end_ns = end_of_later_operators(trace, range.cpu_start_ns, last_work);
  return range;
}

}  // namespace

bool is_inside(std::span<const Window> windows, std::int64_t time_ns) {
  const auto after =
      std::upper_bound(windows.begin(), windows.end(), time_ns,
                       [](std::int64_t time, const Window& each) { return time < each.start_ns; });
  return after != windows.begin() && time_ns < std::prev(after)->end_ns;
}

Steps find_steps(const Trace& trace, const LaunchLinks& links, ProcessId process) {
  Steps result;
  const auto is_own = [&](const Step& step) { return trace.track(step.slice).process == process; };
  const bool choose = std::any_of(trace.steps().begin(), trace.steps().end(), is_own);
  for (const Step& step : trace.steps()) {
    if (choose && !is_own(step)) {
      result.others_mark = true;
      continue;
    }
    const std::int64_t start = trace.start_ns(step.slice), end = trace.end_ns(step.slice);
    if (!result.steps.empty()) {
      StepRange& last = result.steps.back();
      if (start < last.cpu_end_ns) continue;
      if (step.number == *last.number + 1) last.cpu_end_ns = start;
    }
    result.steps.push_back({step.number, step.slice, start, end});
  }
  if (result.steps.empty()) {
    result.found = find_iterations(trace, links, process);
    if (!result.found) return whole_recording(trace, links);
    for (const Iterations::Range& each : result.found->ranges)
      result.steps.push_back({static_cast<std::int64_t>(result.steps.size()) + 1, each.mark,
                              each.start_ns, each.end_ns});
  }
  result.marked = true;
  result.start_up_count = result.steps.size() > 1 ? 1 : 0;
  return result;
}

Steps whole_recording(const Trace& trace, const LaunchLinks& links) {
  Steps result;
  const StepRange whole = whole_range(trace, links);
  if (whole.cpu_end_ns > whole.cpu_start_ns) result.steps.push_back(whole);
  return result;
}

bool runs_behind(const DeviceTimeline& timeline, const Steps& steps) {
  if (!steps.marked || timeline.has_launches()) return false;
  const auto sum = [](const auto& times) { return times[0] + times[1] + times[2]; };
  constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max();
  const std::int64_t last = steps.steps.back().cpu_end_ns;
  return wide(sum(timeline.time_within(last, kEver))) * 20 >
         sum(timeline.time_within(-kEver, kEver));
}

std::vector<Window> compute_step_windows(const Trace& trace, const LaunchLinks& links,
                                         const Steps& steps, const DeviceTimeline& timeline) {
  struct Launched {
    std::int64_t launch_ns, end_ns;
  };
  std::vector<Launched> launched;
  for (const DeviceWork& each : timeline.work) {
    const SliceId launch = links.launch_of[raw(each.slice)];
    if (launch != kNone<SliceId>)
      launched.push_back({trace.start_ns(launch), each.end_ns});
    else if (each.before_recording)
      launched.push_back({std::numeric_limits<std::int64_t>::min(), each.end_ns});
  }
  std::sort(launched.begin(), launched.end(), [](const Launched& a, const Launched& b) {
    return a.launch_ns != b.launch_ns ? a.launch_ns < b.launch_ns : a.end_ns < b.end_ns;
  });
  std::int64_t latest = std::numeric_limits<std::int64_t>::min();
  for (Launched& each : launched) latest = each.end_ns = std::max(latest, each.end_ns);

  const auto boundary = [&](std::int64_t time_ns) {
    const auto after = std::lower_bound(
        launched.begin(), launched.end(), time_ns,
        [](const Launched& each, std::int64_t time) { return each.launch_ns < time; });
    return after == launched.begin() ? time_ns : std::max(time_ns, std::prev(after)->end_ns);
  };
  std::vector<Window> windows;
  for (const StepRange& step : steps.steps)
    windows.push_back({boundary(step.cpu_start_ns), boundary(step.cpu_end_ns)});
  return windows;
}

std::int64_t median_of_steps(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  const std::int64_t below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;
}

std::int64_t lower_median(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

StepStatistics step_statistics(const std::vector<std::int64_t>& lengths_ns) {
  StepStatistics result;
  if (lengths_ns.empty()) return result;
  result.shortest_ns = *std::min_element(lengths_ns.begin(), lengths_ns.end());
  result.longest_ns = *std::max_element(lengths_ns.begin(), lengths_ns.end());
  result.median_ns = median_of_steps(lengths_ns);
  std::vector<std::int64_t> deviations;
  for (const std::int64_t each : lengths_ns)
    deviations.push_back(each > result.median_ns ? each - result.median_ns
                                                 : result.median_ns - each);
  result.mad_ns = median_of_steps(std::move(deviations));
  if (lengths_ns.size() < 3) return result;
  const double limit = static_cast<double>(result.median_ns) +
                       std::max(0.2 * static_cast<double>(result.median_ns),
                                3 * 1.4826 * static_cast<double>(result.mad_ns));
  for (std::size_t i = 0; i < lengths_ns.size(); ++i)
    if (static_cast<double>(lengths_ns[i]) > limit) result.slow.push_back(i);
  return result;
}

}  // namespace lanescope::analysis
