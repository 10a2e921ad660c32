#include "lanescope/view/lane_maker.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "lanescope/base/sort_rows.h"
#include "lanescope/view/row_layout.h"
#include "lanescope/view/slice_kinds.h"

namespace lanescope::view {
namespace {

LaneKind lane_kind(TrackKind track, LanePart part) {
  if (track == TrackKind::kAsync) return LaneKind::kAsync;
  if (track == TrackKind::kThread) return part == kFrames ? LaneKind::kPython : LaneKind::kCpu;
  return part == kRanges  ? LaneKind::kAnnotation
         : part == kWaits ? LaneKind::kSync
                          : LaneKind::kGpu;
}

template <typename Rows, typename Placed>
void place(const Trace& trace, Rows rows, const std::vector<std::uint32_t>& slices,
           std::vector<Placed>& placed) {
  placed.clear();
  for (const std::uint32_t slice : slices)
    placed.push_back(
        {slice, rows.place(trace.slices().start_ns[slice], trace.slices().dur_ns[slice])});
}

}  // namespace

LanePart lane_part_of(TrackKind track, CategoryKind kind) {
  if (track == TrackKind::kAsync) return kBody;
  if (track == TrackKind::kThread)
    return kind == CategoryKind::kPythonFunction || kind == CategoryKind::kPythonSample ? kFrames
                                                                                        : kBody;
  if (kind == CategoryKind::kGpuUserAnnotation) return kRanges;
  return kind == CategoryKind::kCudaSync || kind == CategoryKind::kCudaEvent ? kWaits : kBody;
}

void LaneMaker::run() {
  find_span();
  find_device_threads();
  out_.kinds_ = ViewColumn(time_kinds(facts_, vendor_rows_));
  out_.name_uses_ = ViewColumn(name_uses(trace_));
  out_.index_.reserve(trace_.slices().size());
  std::array<std::uint32_t, Lanes::kParts> none;
  none.fill(kNoLane);
  out_.lanes_of_track_.assign(trace_.tracks().size(), none);
  summarize();
  add_steps();
  for (std::uint32_t i = 0; i < trace_.tracks().size(); ++i)
    if (trace_.tracks()[i].kind != TrackKind::kAsync) add_track(TrackId{i});
  add_async_tracks();
  add_idle();
  add_queues();
  add_memory();
  add_counters();
  find_ranks();
  choose();
  put_in_order();
}

void LaneMaker::find_span() {
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  const auto& slices = trace_.slices();
  for (std::size_t i = 0; i < slices.size(); ++i) {
    first = std::min(first, slices.start_ns[i]);
    last = std::max(last, slices.start_ns[i] + slices.dur_ns[i]);
  }
  for (const std::int64_t time : trace_.counters().time_ns) {
    first = std::min(first, time);
    last = std::max(last, time);
  }
  for (const auto& device : facts_.memory.devices)
    for (const auto& sample : device.samples) {
      first = std::min(first, sample.time_ns);
      last = std::max(last, sample.time_ns);
    }
  if (first > last) first = last = 0;
  out_.summary_.origin_ns = first;
  out_.summary_.end_ns = std::max(last, first + 1);
}

void LaneMaker::find_device_threads() {
  is_device_thread_.assign(trace_.tracks().size(), false);
  if (facts_.vendor) vendor_rows_ = analysis::find_vendor_rows(trace_);
  for (const analysis::VendorRow& row : vendor_rows_)
    is_device_thread_[raw(trace_.slices().track[raw(row.slice)])] = true;
}

// ranks/merge_traces.h names the processes "rank 3 python". A device belongs to the rank whose
// streams it has.
void LaneMaker::find_ranks() {
  if (!trace_.metadata_json("lanescope_merged_ranks")) return;
  const auto rank_of_process = [&](ProcessId id) -> std::optional<std::int64_t> {
    constexpr std::string_view kWord = "rank ";
    const std::string_view name = trace_.text(trace_.process(id).name);
    std::int64_t rank = 0;
    if (!name.starts_with(kWord) ||
        std::from_chars(name.data() + kWord.size(), name.data() + name.size(), rank).ec !=
            std::errc())
      return std::nullopt;
    return rank;
  };
  std::map<std::int64_t, std::optional<std::int64_t>> of_device;
  for (const Track& track : trace_.tracks())
    if (track.kind == TrackKind::kStream && track.device)
      of_device.emplace(*track.device, rank_of_process(track.process));
  for (const LaneGroup& each : out_.groups_)
    out_.rank_of_group_.push_back(each.device                        ? of_device[*each.device]
                                  : each.process != kNone<ProcessId> ? rank_of_process(each.process)
                                                                     : std::nullopt);
}

std::uint32_t LaneMaker::group(const LaneGroup& wanted) {
  for (std::uint32_t i = 0; i < out_.groups_.size(); ++i) {
    const LaneGroup& each = out_.groups_[i];
    if (each.kind == wanted.kind && each.process == wanted.process && each.device == wanted.device)
      return i;
  }
  out_.groups_.push_back(wanted);
  return static_cast<std::uint32_t>(out_.groups_.size() - 1);
}

std::uint32_t LaneMaker::group_of(const Track& track) {
  if (track.kind == TrackKind::kStream) {
    const std::optional<std::int64_t> device = track.device;
    if (device)
      return cached_group(device_groups_, *device,
                          {LaneGroup::Kind::kGpu, kNone<ProcessId>, device});
    return cached_group(process_gpu_groups_, raw(track.process),
                        {LaneGroup::Kind::kGpu, track.process, {}});
  }
  return cached_group(process_groups_, raw(track.process),
                      {LaneGroup::Kind::kCpu, track.process, {}});
}

std::uint32_t LaneMaker::device_group(std::int64_t device) {
  return cached_group(device_groups_, device, {LaneGroup::Kind::kGpu, kNone<ProcessId>, device});
}

void LaneMaker::add_row(Lane& lane, const std::vector<LevelSlice>& items) {
  lane.first_row = static_cast<std::uint32_t>(out_.index_.row_count());
  lane.row_count = 1;
  lane.slice_count = items.size();
  out_.index_.begin_row();
  for (const LevelSlice& item : items) {
    out_.index_.add(item);
    lane.busy_ns += item.dur_ns;
  }
  out_.index_.end_row();
}

void LaneMaker::summarize() {
  LaneSummary& summary = out_.summary_;
  if (facts_.main_device) summary.main_device = facts_.device().timeline.device;
  const auto& links = facts_.links;
  summary.work_count = links.device_work_count;
  summary.launched_count = links.launched_count;
  for (std::uint32_t i = 0; i < links.launch_of.size(); ++i)
    if (links.launch_of[i] != kNone<SliceId> &&
        trace_.start_ns(SliceId{i}) < trace_.start_ns(links.launch_of[i]))
      ++summary.early_count;
  if (!facts_.steps.marked) return;
  std::vector<LaneStep> steps;
  for (std::size_t i = 0; i < facts_.steps.steps.size(); ++i) {
    const auto& step = facts_.steps.steps[i];
    const analysis::Window device = facts_.step_window(i);
    steps.push_back({step.number.value_or(0), step.cpu_start_ns,
                     step.cpu_end_ns - step.cpu_start_ns, device.start_ns, device.length_ns(),
                     step.slice, static_cast<std::uint16_t>(step.number.has_value()), 0});
  }
  std::vector<std::pair<std::int64_t, std::uint32_t>> lengths;
  for (const std::size_t step : facts_.selection.steady) {
    steps[step].is_steady = 1;
    lengths.emplace_back(steps[step].device_dur_ns, static_cast<std::uint32_t>(step));
  }
  out_.steps_ = ViewColumn(std::move(steps));
  if (lengths.empty()) return;
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>((lengths.size() - 1) / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  summary.typical_step = middle->second;
}

void LaneMaker::add_steps() {
  std::vector<LevelSlice> items;
  for (std::uint32_t i = 0; i < out_.steps_.size(); ++i) {
    const LaneStep& step = out_.steps_[i];
    if (!items.empty() &&
        items.back().start_ns + std::max<std::int64_t>(items.back().dur_ns, 1) > step.start_ns)
      continue;  // two of no length at one time
    items.push_back({step.start_ns, step.dur_ns, i});
  }
  if (items.empty()) return;
  Lane lane{.kind = LaneKind::kSteps, .group = trace_group(), .is_main = true};
  add_row(lane, items);
  out_.lanes_.push_back(lane);
}

void LaneMaker::add_lane(Lane lane, const std::vector<Placed>& placed) {
  std::uint32_t row_count = 0;
  std::int64_t covered_until = INT64_MIN;
  for (const Placed& each : placed) {
    row_count = std::max(row_count, each.row + 1);
    const std::int64_t start = trace_.slices().start_ns[each.slice];
    const std::int64_t end = start + trace_.slices().dur_ns[each.slice];
    lane.busy_ns += std::max<std::int64_t>(0, end - std::max(start, covered_until));
    covered_until = std::max(covered_until, end);
  }
  // By row, in each in the order they have.
  std::vector<std::uint32_t> first(row_count + 1, 0), sorted(placed.size());
  for (const Placed& each : placed) ++first[each.row + 1];
  for (std::uint32_t row = 0; row < row_count; ++row) first[row + 1] += first[row];
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (const Placed& each : placed) sorted[next[each.row]++] = each.slice;
  lane.first_row = static_cast<std::uint32_t>(out_.index_.row_count());
  lane.row_count = row_count;
  lane.slice_count = placed.size();
  for (std::uint32_t row = 0; row < row_count; ++row) {
    out_.index_.begin_row();
    for (std::uint32_t i = first[row]; i < first[row + 1]; ++i)
      out_.index_.add(
          {trace_.slices().start_ns[sorted[i]], trace_.slices().dur_ns[sorted[i]], sorted[i]});
    out_.index_.end_row();
  }
  out_.lanes_.push_back(lane);
}

void LaneMaker::add_track(TrackId id) {
  const Track& track = trace_.track(id);
  if (track.slice_count == 0) return;
  for (auto& part : parts_) part.clear();
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
    parts_[lane_part_of(track.kind, trace_.kind(SliceId{i}))].push_back(i);
  for (std::uint8_t part = 0; part < Lanes::kParts; ++part) {
    if (parts_[part].empty()) continue;
    Lane lane{.kind = is_device_thread_[raw(id)] && part == kBody
                          ? LaneKind::kDevice
                          : lane_kind(track.kind, static_cast<LanePart>(part)),
              .group = group_of(track),
              .track = id,
              .device = track.device};
    if (lane.kind == LaneKind::kGpu || lane.kind == LaneKind::kSync ||
        lane.kind == LaneKind::kDevice)
      place(trace_, FirstFreeRows(), parts_[part], placed_);
    else
      place(trace_, NestedRows(), parts_[part], placed_);
    out_.lanes_of_track_[raw(id)][part] = static_cast<std::uint32_t>(out_.lanes_.size());
    add_lane(lane, placed_);
  }
}

void LaneMaker::add_async_tracks() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<TrackId>> together;
  for (std::uint32_t i = 0; i < trace_.tracks().size(); ++i) {
    const Track& track = trace_.tracks()[i];
    if (track.kind == TrackKind::kAsync && track.slice_count > 0)
      together[{raw(track.process), raw(track.series)}].push_back(TrackId{i});
  }
  for (const auto& [key, tracks] : together) {
    std::vector<std::uint32_t>& slices = parts_[0];
    slices.clear();
    for (const TrackId id : tracks) {
      const Track& track = trace_.track(id);
      for (std::uint32_t i = 0; i < track.slice_count; ++i) slices.push_back(track.first_slice + i);
      out_.lanes_of_track_[raw(id)][0] = static_cast<std::uint32_t>(out_.lanes_.size());
    }
    sort_rows(slices.begin(), slices.end(), [&](std::uint32_t a, std::uint32_t b) {
      return trace_.slices().start_ns[a] < trace_.slices().start_ns[b];
    });
    place(trace_, FirstFreeRows(), slices, placed_);
    const Track& first = trace_.track(tracks.front());
    add_lane({.kind = LaneKind::kAsync, .group = group_of(first), .track = tracks.front()},
             placed_);
  }
}

void LaneMaker::add_idle() {
  for (std::uint32_t device = 0; device < facts_.devices.size(); ++device) {
    const auto& gaps = facts_.devices[device].gaps;
    std::vector<LevelSlice> items;
    for (std::uint32_t gap = 0; gap < gaps.gaps.size(); ++gap) {
      const auto& each = gaps.gaps[gap];
      for (std::uint32_t part = each.first_part; part < each.first_part + each.part_count; ++part) {
        const auto& time = gaps.parts[part];
        items.push_back({time.start_ns, time.end_ns - time.start_ns,
                         static_cast<std::uint32_t>(out_.idle_causes_.size())});
        out_.idle_causes_.push_back(static_cast<std::uint8_t>(time.cause));
      }
    }
    if (items.empty()) continue;
    const std::int64_t number = facts_.devices[device].timeline.device;
    Lane lane{.kind = LaneKind::kIdle, .group = device_group(number), .device = number};
    add_row(lane, items);
    out_.lanes_.push_back(lane);
  }
}

}  // namespace lanescope::view
