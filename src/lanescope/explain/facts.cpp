#include "lanescope/explain/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lanescope/analysis/time_span.h"
#include "lanescope/base/share_work.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/facts_memo.h"

namespace lanescope::explain {

using analysis::Gaps;
using analysis::IdleCause;
using analysis::IdlePart;
using analysis::Window;

Facts::Facts() = default;
Facts::Facts(Facts&&) noexcept = default;
Facts& Facts::operator=(Facts&&) noexcept = default;
Facts::~Facts() = default;

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

IdleTimes idle_within_steady(const Facts& facts, const Window& window) {
  IdleTimes times{};
  auto steady =
      std::upper_bound(facts.steady_windows.begin(), facts.steady_windows.end(), window.start_ns,
                       [](std::int64_t time, const Window& each) { return time < each.end_ns; });
  for (; steady != facts.steady_windows.end() && steady->start_ns < window.end_ns; ++steady) {
    const IdleTimes part = idle_within(
        facts.device().gaps,
        {std::max(window.start_ns, steady->start_ns), std::min(window.end_ns, steady->end_ns)});
    for (std::size_t i = 0; i < times.size(); ++i) times[i] += part[i];
  }
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

// What looks like the end of all work is the end of what was recorded of it.
void mark_after_last_work_unknown(Gaps& gaps) {
  for (IdlePart& part : gaps.parts)
    if (part.cause == IdleCause::kAfterLastWork) part.cause = IdleCause::kUnknown;
}

// Without marked steps, the recording ends with the last work of a device, or with operators that run
// long after it (analysis/steps.cpp). These had launched nothing yet.
void count_later_operators(const Facts& facts, Gaps& gaps) {
  if (facts.steps.marked || facts.steps.steps.empty()) return;
  const std::int64_t end_ns = facts.steps.steps.back().cpu_end_ns;
  for (const DeviceFacts& device : facts.devices)
    if (!device.timeline.busy.empty() && device.timeline.busy.back().end_ns >= end_ns) return;
  for (IdlePart& part : gaps.parts)
    if (part.cause == IdleCause::kAfterLastWork) part.cause = IdleCause::kHostLate;
}

// In a file that was cut, a gap may be work whose events were in the missing part.
void mark_all_unknown(Gaps& gaps) {
  for (IdlePart& part : gaps.parts) part.cause = IdleCause::kUnknown;
}

// Ties: the first.
std::optional<std::size_t> busiest(const std::vector<analysis::DeviceTimeline>& timelines) {
  std::optional<std::size_t> best;
  std::int64_t longest = -1;
  for (std::size_t i = 0; i < timelines.size(); ++i) {
    std::int64_t busy = 0;
    for (const auto& segment : timelines[i].busy) busy += segment.end_ns - segment.start_ns;
    if (busy > longest) {
      longest = busy;
      best = i;
    }
  }
  return best;
}

// From where to where gaps of a device are looked for: its steps. In a trace of several ranks the steps
// are those of one rank, and say nothing of the others' devices: there it is the device's own work.
Window range_of_gaps(const Facts& facts, std::size_t index) {
  const auto& [timeline, windows, gaps, walls] = facts.devices[index];
  if (!facts.trace->metadata_json("lanescope_merged_ranks") || index == facts.main_device ||
      timeline.busy.empty())
    return windows.empty() ? Window{} : Window{windows.front().start_ns, windows.back().end_ns};
  return {timeline.busy.front().start_ns, timeline.busy.back().end_ns};
}

void add_gaps(Facts& facts, std::size_t index) {
  DeviceFacts& device = facts.devices[index];
  if (const Window range = range_of_gaps(facts, index); range.length_ns() > 0) {
    device.gaps = analysis::find_gaps(*facts.trace, facts.links, device.timeline, range);
    if (facts.trace->import_stats().is_truncated())
      mark_all_unknown(device.gaps);
    else if (facts.kernel_launches.gpu_stops_early())
      mark_after_last_work_unknown(device.gaps);
    else
      count_later_operators(facts, device.gaps);
  }
  for (const Window& window : device.windows)
    device.walls.push_back({analysis::compute_wall_partition(device.timeline, window),
                            idle_within(device.gaps, window)});
}

// In a file of several processes: the one that launched most work of the main device; without a
// device the one whose thread is busiest.
ProcessId step_process(const Facts& facts, const std::vector<analysis::DeviceTimeline>& timelines) {
  const Trace& trace = *facts.trace;
  if (!facts.main_device) {
    const TrackId thread = analysis::busiest_host_thread(trace, facts.nesting);
    return thread == kNone<TrackId> ? kNone<ProcessId> : trace.track(thread).process;
  }
  std::map<std::uint32_t, std::size_t> launched;  // by process
  for (const auto& work : timelines[*facts.main_device].work)
    if (const SliceId launch = facts.links.launch_of[raw(work.slice)]; launch != kNone<SliceId>)
      ++launched[raw(trace.track(launch).process)];
  const auto most =
      std::max_element(launched.begin(), launched.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == launched.end() ? kNone<ProcessId> : ProcessId{most->first};
}

// None: no thread has operators or annotations.
std::optional<HostFacts> cpu_facts_of(const Facts& facts) {
  const auto& steps = facts.steps.steps;
  if (steps.empty()) return std::nullopt;
  HostFacts cpu;
  cpu.thread = facts.steps.marked
                   ? analysis::step_thread(*facts.trace, facts.nesting,
                                           facts.trace->slices().track[raw(steps.front().slice)])
                   : analysis::busiest_host_thread(*facts.trace, facts.nesting);
  if (cpu.thread == kNone<TrackId>) return std::nullopt;
  const analysis::HostWalls walls(*facts.trace, facts.links, *facts.host, facts.threads);
  for (std::size_t i = 0; i < steps.size(); ++i)
    cpu.walls.push_back(walls.of(cpu.thread, facts.step_window(i)));
  return cpu;
}

// Cuts the gap that holds a moment, and its part, in two.
void cut_gap(Gaps& gaps, std::int64_t moment_ns) {
  const auto holds = [&](const auto& each) {
    return each.start_ns < moment_ns && moment_ns < each.end_ns;
  };
  const auto gap = std::find_if(gaps.gaps.begin(), gaps.gaps.end(), holds);
  if (gap == gaps.gaps.end()) return;
  auto part = std::find_if(gaps.parts.begin(), gaps.parts.end(), holds);
  std::uint32_t added = 0;
  if (part != gaps.parts.end()) {
    IdlePart before = *part;
    before.end_ns = part->start_ns = moment_ns;
    part = gaps.parts.insert(part, before);
    added = 1;
  }
  // The first part of the second half.
  const auto second = static_cast<std::uint32_t>(
      std::find_if(gaps.parts.begin(), gaps.parts.end(),
                   [&](const IdlePart& each) { return each.start_ns >= moment_ns; }) -
      gaps.parts.begin());
  analysis::Gap half = *gap;
  half.start_ns = gap->end_ns = moment_ns;
  half.part_count = gap->first_part + gap->part_count + added - second;
  half.first_part = second;
  gap->part_count = second - gap->first_part;
  for (auto later = std::next(gap); later != gaps.gaps.end(); ++later) later->first_part += added;
  gaps.gaps.insert(std::next(gap), half);
}

// A gap over the edge of a step that is left out lies in a steady one in part.
void cut_gaps_at_long_step(Facts& facts) {
  const auto step = facts.selection.long_step;
  if (!step || !facts.main_device) return;
  const Window window = facts.device().windows[*step];
  cut_gap(facts.devices[*facts.main_device].gaps, window.start_ns);
  cut_gap(facts.devices[*facts.main_device].gaps, window.end_ns);
}

void measure_steady(Facts& facts) {
  for (const std::size_t index : facts.selection.steady) {
    if (facts.main_device) facts.wall += facts.device().walls[index];
    if (facts.cpu) facts.cpu_wall += facts.cpu->walls[index];
    if (!facts.vendor) continue;
    const analysis::VendorWall wall = facts.vendor->wall_of(facts.step_window(index));
    facts.vendor_wall.wall_ns += wall.wall_ns;
    facts.vendor_wall.compute_ns += wall.compute_ns;
    facts.vendor_wall.exposed_communication_ns += wall.exposed_communication_ns;
    facts.vendor_wall.exposed_copy_ns += wall.exposed_copy_ns;
  }
}

// Small traces take less time than starting a thread.
unsigned threads_for(const Facts& facts) {
  constexpr std::size_t kSmallTrace = 20'000;  // slices
  return facts.threads == 0 && facts.trace->slices().size() < kSmallTrace ? 1 : facts.threads;
}

// They read the trace, its links and its nesting, and nothing of each other.
std::vector<analysis::DeviceTimeline> read_events(Facts& facts) {
  const Trace& trace = *facts.trace;
  std::vector<analysis::DeviceTimeline> timelines;
  const std::function<void()> parts[] = {
      [&] { timelines = analysis::compute_device_timelines(trace, facts.links); },
      [&] { facts.host.emplace(trace); },
      [&] {
        facts.kernel_launches = analysis::find_kernel_launches(trace, facts.links);
        facts.main_thread = analysis::main_launch_thread(trace, facts.links);
      },
      [&] {
        facts.frames = analysis::FrameTable(trace);
        facts.memory = analysis::compute_memory_timeline(trace, &facts.frames);
      }};
  share_work(std::size(parts), threads_for(facts), [&](std::size_t i) { parts[i](); });
  return timelines;
}

// Gaps, and how launches relate to the work of the steady steps: these need the steps alone.
void read_devices(Facts& facts) {
  const std::size_t devices = facts.devices.size();
  share_work(devices + 1, threads_for(facts), [&](std::size_t i) {
    if (i < devices)
      add_gaps(facts, i);
    else if (facts.main_device)
      facts.launches = analysis::compute_launch_stats(
          *facts.trace, facts.links, facts.device().timeline, facts.steady_windows);
  });
}

Error too_far_apart(const Trace& trace, const analysis::FarTimes& far) {
  constexpr double kYearNs = 365.25 * 86400e9;
  const auto place = [&](SliceId slice) { return trace.slices().event_index[raw(slice)] + 1; };
  return {
      Errc::kCorruptInput,
      fmt::format("expected times within 104 days, found {:.1f} years from event {} to event "
                  "{} of the file: a time in it is wrong. Remove that event and try again",
                  static_cast<double>(far.span_ns) / kYearNs, place(far.first), place(far.last))};
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

Window Facts::step_window(std::size_t step) const {
  if (main_device) return device().windows[step];
  return {steps.steps[step].cpu_start_ns, steps.steps[step].cpu_end_ns};
}

std::vector<std::int64_t> Facts::steady_lengths_ns() const {
  std::vector<std::int64_t> lengths;
  for (const std::size_t step : selection.steady) lengths.push_back(step_window(step).length_ns());
  return lengths;
}

std::vector<Window> Facts::steady_cpu_windows() const {
  std::vector<Window> windows;
  for (const std::size_t index : selection.steady)
    join(windows, {steps.steps[index].cpu_start_ns, steps.steps[index].cpu_end_ns});
  return windows;
}

Confidence Facts::confidence() const {
  constexpr std::int64_t kShortWallNs = 1'000'000;  // percentages of less than 1 ms are unsteady
  const std::size_t samples = selection.steady.size();
  if (samples >= 3 && steady_wall_ns() >= kShortWallNs) return Confidence::kHigh;
  return samples >= 2 || steady_wall_ns() >= 10 * kShortWallNs ? Confidence::kMedium
                                                               : Confidence::kLow;
}

Result<analysis::StepSelection> select_steps_of(const Facts& facts,
                                                const analysis::StepOptions& options) {
  std::vector<Window> windows;
  for (std::size_t i = 0; i < facts.steps.steps.size(); ++i)
    windows.push_back(facts.step_window(i));
  return analysis::select_steps({*facts.trace, facts.steps, facts.kernel_launches,
                                 facts.main_device ? &facts.device().timeline : nullptr, windows},
                                options);
}

Result<Facts> gather_facts(const Trace& trace, const analysis::StepOptions& options,
                           unsigned threads) {
  if (const auto far = analysis::find_far_times(trace)) return too_far_apart(trace, *far);
  Facts facts;
  facts.trace = &trace;
  facts.threads = threads;
  facts.links = analysis::compute_launch_links(trace, threads);
  facts.nesting = analysis::compute_slice_nesting(trace, {.threads = threads});
  auto timelines = read_events(facts);
  facts.main_device = busiest(timelines);
  facts.steps = analysis::find_steps(trace, facts.links, step_process(facts, timelines));
  if (facts.main_device && analysis::runs_behind(timelines[*facts.main_device], facts.steps)) {
    facts.steps = analysis::whole_recording(trace, facts.links);
    facts.steps.device_behind = true;
  }
  for (auto& timeline : timelines) {
    auto windows = analysis::compute_step_windows(trace, facts.links, facts.steps, timeline);
    facts.devices.push_back({std::move(timeline), std::move(windows), {}, {}});
  }
  if (!facts.main_device) {
    facts.cpu = cpu_facts_of(facts);
    facts.vendor = analysis::find_vendor_device(trace);
  }
  LANESCOPE_TRY(facts.selection, select_steps_of(facts, options));
  for (const std::size_t index : facts.selection.steady)
    join(facts.steady_windows, facts.step_window(index));
  read_devices(facts);
  cut_gaps_at_long_step(facts);
  measure_steady(facts);
  return facts;
}

Value step_number(const Facts& facts, std::size_t step) {
  const analysis::StepRange& range = facts.steps.steps[step];
  return linked(count(static_cast<std::uint64_t>(range.number.value_or(0))), range.slice);
}

namespace {

// Time of each slice that threads were in during some stretches. A column of all slices: there are millions of visits.
class SliceTimes {
 public:
  explicit SliceTimes(std::size_t slices) : times_(slices, 0) {}
  void add(SliceId slice, std::int64_t time_ns) {
    if (slice == kNone<SliceId>) {
      has_none_ = true;
      none_ns_ += time_ns;
      return;
    }
    std::int64_t& time = times_[raw(slice)];
    if (time == 0 && time_ns > 0) seen_.push_back(slice);
    time += time_ns;
  }
  std::span<const SliceId> seen() const { return seen_; }
  std::int64_t of(SliceId slice) const { return times_[raw(slice)]; }
  // Outside of all events; nothing: no thread was.
  std::optional<std::int64_t> none_ns() const {
    return has_none_ ? std::optional(none_ns_) : std::nullopt;
  }

 private:
  std::vector<std::int64_t> times_;
  std::vector<SliceId> seen_;
  std::int64_t none_ns_ = 0;
  bool has_none_ = false;
};

}  // namespace

std::vector<HostShare> host_shares(const Facts& facts, const std::vector<HostStretch>& stretches) {
  const Trace& trace = *facts.trace;
  SliceTimes times(trace.slices().size());
  analysis::HostReader host(*facts.host);
  for (const HostStretch& stretch : stretches) {
    if (stretch.thread == kNone<TrackId>) continue;
    host.visit(
        stretch.thread, stretch.start_ns, stretch.end_ns,
        [&](SliceId slice, std::int64_t from, std::int64_t to) { times.add(slice, to - from); });
  }
  std::map<std::string, HostShare> by_name;
  std::unordered_map<std::uint32_t, HostShare*> by_string;  // by raw StringId
  if (times.none_ns()) by_name[""].time_ns = *times.none_ns();
  for (const SliceId id : times.seen()) {
    HostShare*& share = by_string[raw(trace.slices().name[raw(id)])];
    if (!share) {
      const std::string_view label = trace.name(id);
      share = &by_name[label.starts_with("ProfilerStep#") ? "ProfilerStep*" : std::string(label)];
    }
    const std::int64_t time_ns = times.of(id);
    share->time_ns += time_ns;
    const std::int64_t most =
        share->longest == kNone<SliceId> ? std::int64_t{-1} : times.of(share->longest);
    if (time_ns < most || (time_ns == most && trace.start_ns(id) >= trace.start_ns(share->longest)))
      continue;
    share->longest = id;
    share->kind = trace.kind(id);
  }
  std::vector<HostShare> shares;
  shares.reserve(by_name.size());
  for (auto& [label, share] : by_name) {
    share.name = label;
    shares.push_back(std::move(share));
  }
  sort_rows(shares.begin(), shares.end(),
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

namespace {

std::vector<HostStretch> find_late_stretches(const Facts& facts) {
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

std::vector<HostShare> find_late_shares(const Facts& facts) {
  return host_shares(facts, host_late_stretches(facts));
}

}  // namespace

const std::vector<HostStretch>& host_late_stretches(const Facts& facts) {
  return made_once<find_late_stretches>(facts);
}

const std::vector<HostShare>& host_late_shares(const Facts& facts) {
  return made_once<find_late_shares>(facts);
}

}  // namespace lanescope::explain
