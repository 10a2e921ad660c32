#include "lanescope/explain/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace lanescope::explain {

using analysis::Gaps;
using analysis::IdleCause;
using analysis::IdlePart;
using analysis::Window;

WallTimes& WallTimes::operator+=(const WallTimes& other) {
  partition += other.partition;
  for (std::size_t i = 0; i < idle.size(); ++i) idle[i] += other.idle[i];
  return *this;
}

IdleTimes idle_within(const Gaps& gaps, const Window& window) {
  IdleTimes times{};
  auto part =
      std::upper_bound(gaps.parts.begin(), gaps.parts.end(), window.start_ns,
                       [](std::int64_t time, const IdlePart& each) { return time < each.end_ns; });
  for (; part != gaps.parts.end() && part->start_ns < window.end_ns; ++part)
    times[static_cast<std::size_t>(part->cause)] +=
        std::min(part->end_ns, window.end_ns) - std::max(part->start_ns, window.start_ns);
  return times;
}

bool inside(const std::vector<Window>& windows, std::int64_t time_ns) {
  const auto after =
      std::upper_bound(windows.begin(), windows.end(), time_ns,
                       [](std::int64_t time, const Window& each) { return time < each.start_ns; });
  return after != windows.begin() && time_ns < std::prev(after)->end_ns;
}

namespace {

void join(std::vector<Window>& windows, const Window& next) {
  if (next.end_ns <= next.start_ns) return;
  if (!windows.empty() && windows.back().end_ns >= next.start_ns)
    windows.back().end_ns = std::max(windows.back().end_ns, next.end_ns);
  else
    windows.push_back(next);
}

DeviceFacts facts_of(const Facts& facts, analysis::DeviceTimeline timeline) {
  DeviceFacts device;
  device.windows = analysis::compute_step_windows(*facts.trace, facts.links, facts.steps, timeline);
  if (!device.windows.empty()) {
    const Window range{device.windows.front().start_ns, device.windows.back().end_ns};
    device.gaps = analysis::find_gaps(*facts.trace, facts.links, timeline, range);
  }
  for (const Window& window : device.windows)
    device.walls.push_back(
        {analysis::compute_wall_partition(timeline, window), idle_within(device.gaps, window)});
  device.timeline = std::move(timeline);
  return device;
}

}  // namespace

std::int64_t Facts::idle_at_ends_ns() const {
  return !steps.marked
             ? 0
             : wall.idle_by(IdleCause::kBeforeFirstWork) + wall.idle_by(IdleCause::kAfterLastWork);
}

std::int64_t Facts::waiting_for_cpu_ns() const {
  return wall.idle_by(IdleCause::kHostLate) + wall.idle_by(IdleCause::kAfterSync) +
         wall.idle_by(IdleCause::kLaunchLatency) + idle_at_ends_ns();
}

std::vector<Window> Facts::steady_cpu_windows() const {
  std::vector<Window> windows;
  for (const std::size_t index : steady)
    join(windows, {steps.steps[index].cpu_start_ns, steps.steps[index].cpu_end_ns});
  return windows;
}

Confidence Facts::confidence() const {
  constexpr std::int64_t kShortWallNs = 1'000'000;  // percentages of less than 1 ms are unsteady
  if (steady.size() >= 3 && wall.partition.wall_ns >= kShortWallNs) return Confidence::kHigh;
  return steady.size() >= 2 || wall.partition.wall_ns >= 10 * kShortWallNs ? Confidence::kMedium
                                                                           : Confidence::kLow;
}

Result<Facts> gather_facts(const Trace& trace, std::optional<std::int64_t> step) {
  Facts facts;
  facts.trace = &trace;
  facts.links = analysis::compute_launch_links(trace);
  facts.nesting = analysis::compute_slice_nesting(trace);
  facts.steps = analysis::find_steps(trace, facts.links);
  facts.host.emplace(trace);
  facts.memory = analysis::compute_memory_timeline(trace);
  facts.main_thread = analysis::main_launch_thread(trace, facts.links);
  for (auto& timeline : analysis::compute_device_timelines(trace, facts.links))
    facts.devices.push_back(facts_of(facts, std::move(timeline)));

  const auto& steps = facts.steps.steps;
  if (step) {
    const auto found = std::find_if(steps.begin(), steps.end(),
                                    [&](const auto& each) { return each.number == step; });
    if (found == steps.end())
      return Error{Errc::kInvalidArgument,
                   !facts.steps.marked
                       ? "expected a step's number, but the trace marks no steps"
                       : fmt::format("expected a step from {} to {}, found {}",
                                     *steps.front().number, *steps.back().number, *step)};
    facts.steady.push_back(static_cast<std::size_t>(found - steps.begin()));
    facts.one_step_chosen = true;
  } else {
    for (std::size_t i = facts.steps.first_steady; i < steps.size(); ++i) facts.steady.push_back(i);
  }

  std::int64_t longest_busy = -1;
  for (std::size_t i = 0; i < facts.devices.size(); ++i) {
    std::int64_t busy = 0;
    for (const auto& segment : facts.devices[i].timeline.busy)
      busy += segment.end_ns - segment.start_ns;
    if (busy > longest_busy) {
      longest_busy = busy;
      facts.main_device = i;
    }
  }
  if (facts.main_device) {
    for (const std::size_t index : facts.steady) {
      join(facts.steady_windows, facts.device().windows[index]);
      facts.wall += facts.device().walls[index];
    }
    facts.launches = analysis::compute_launch_stats(trace, facts.links, facts.device().timeline,
                                                    facts.steady_windows);
  }
  return facts;
}

std::vector<HostShare> host_shares(const Facts& facts, const std::vector<HostStretch>& stretches) {
  std::unordered_map<std::uint32_t, std::int64_t> by_slice;  // raw SliceId -> ns
  for (const HostStretch& stretch : stretches) {
    if (stretch.thread == kNone<TrackId>) continue;
    facts.host->visit(stretch.thread, stretch.start_ns, stretch.end_ns,
                      [&](SliceId slice, std::int64_t from, std::int64_t to) {
                        by_slice[raw(slice)] += to - from;
                      });
  }
  std::map<std::string, HostShare> by_name;
  std::unordered_map<std::uint32_t, HostShare*> by_string;
  std::map<std::string, std::int64_t> longest;
  for (const auto& [slice, time_ns] : by_slice) {
    const SliceId id{slice};
    std::string label;
    if (id != kNone<SliceId>) {
      label = facts.trace->name(id);
      if (label.starts_with("ProfilerStep#")) label = "ProfilerStep*";
    }
    HostShare& share = by_name[label];
    share.time_ns += time_ns;
    if (id == kNone<SliceId>) continue;
    std::int64_t& most = longest[label];
    const bool is_longer =
        share.longest == kNone<SliceId> || time_ns > most ||
        (time_ns == most && facts.trace->start_ns(id) < facts.trace->start_ns(share.longest));
    if (!is_longer) continue;
    most = time_ns;
    share.longest = id;
    share.kind = facts.trace->kind(id);
  }
  std::vector<HostShare> shares;
  for (auto& [label, share] : by_name) {
    share.name = label;
    shares.push_back(std::move(share));
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const HostShare& a, const HostShare& b) { return a.time_ns > b.time_ns; });
  return shares;
}

Sentence describe(const HostShare& share) {
  if (share.name.empty()) return say("no recorded event on the launching thread");
  switch (share.kind) {
    case CategoryKind::kRuntime:
    case CategoryKind::kDriver:
      return say("inside {}", {name(share.name)});
    case CategoryKind::kUserAnnotation:
      return say("code in {} outside any operator", {name(share.name)});
    case CategoryKind::kPythonFunction:
      return say("Python: {}", {name(share.name)});
    default:
      return say("{}, its own CPU time", {name(share.name)});
  }
}

std::vector<HostStretch> host_late_stretches(const Facts& facts) {
  std::vector<HostStretch> stretches;
  if (!facts.main_device) return stretches;
  std::size_t at = 0;
  for (const IdlePart& part : facts.device().gaps.parts) {
    if (part.thread == kNone<TrackId>) continue;  // nobody launched anything
    const bool at_end =
        part.cause == IdleCause::kBeforeFirstWork || part.cause == IdleCause::kAfterLastWork;
    if (part.cause != IdleCause::kHostLate && part.cause != IdleCause::kAfterSync &&
        !(at_end && facts.steps.marked))
      continue;
    while (at < facts.steady_windows.size() && facts.steady_windows[at].end_ns <= part.start_ns)
      ++at;
    for (std::size_t i = at; i < facts.steady_windows.size(); ++i) {
      const Window& window = facts.steady_windows[i];
      if (window.start_ns >= part.end_ns) break;
      stretches.push_back({part.thread, std::max(part.start_ns, window.start_ns),
                           std::min(part.end_ns, window.end_ns), part.blame});
    }
  }
  return stretches;
}

}  // namespace lanescope::explain
