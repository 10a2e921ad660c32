#include "lanescope/view/lanes.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "lanescope/analysis/launch_queue.h"
#include "lanescope/view/row_layout.h"

namespace lanescope::view {
namespace {

using analysis::WorkClass;
using explain::Facts;

constexpr std::uint32_t kNoLane = ~std::uint32_t{0};
// A thread that is busy for less than this part of the recording, or a stream for less than this
// part of its device's busiest stream, is quiet.
constexpr std::int64_t kQuietThreadPart = 50, kQuietStreamPart = 200;
// Lanes that matter: streams of the main device; without one, threads besides the main one.
constexpr std::size_t kMostMainStreams = 4, kMostOtherMain = 6, kMostOtherMainOfGroup = 2;

// The lanes of a track, by what a slice is.
enum Part : std::uint8_t { kBody, kFrames, kRanges, kWaits };

Part part_of(TrackKind track, CategoryKind kind) {
  if (track == TrackKind::kAsync) return kBody;
  if (track == TrackKind::kThread)
    return kind == CategoryKind::kPythonFunction || kind == CategoryKind::kPythonSample ? kFrames
                                                                                        : kBody;
  if (kind == CategoryKind::kGpuUserAnnotation) return kRanges;
  return kind == CategoryKind::kCudaSync || kind == CategoryKind::kCudaEvent ? kWaits : kBody;
}

LaneKind lane_kind(TrackKind track, Part part) {
  if (track == TrackKind::kAsync) return LaneKind::kAsync;
  if (track == TrackKind::kThread) return part == kFrames ? LaneKind::kPython : LaneKind::kCpu;
  return part == kRanges  ? LaneKind::kAnnotation
         : part == kWaits ? LaneKind::kSync
                          : LaneKind::kGpu;
}

TimeKind kind_of(WorkClass work) {
  return work == WorkClass::kCompute         ? TimeKind::kCompute
         : work == WorkClass::kCommunication ? TimeKind::kCommunication
                                             : TimeKind::kCopy;
}

TimeKind kind_of(const Trace& trace, const analysis::LaunchLinks& links, SliceId slice) {
  switch (trace.kind(slice)) {
    case CategoryKind::kCpuOp:
      return TimeKind::kOperator;
    case CategoryKind::kUserAnnotation:
    case CategoryKind::kGpuUserAnnotation:
      return TimeKind::kAnnotation;
    case CategoryKind::kPythonFunction:
    case CategoryKind::kPythonSample:
      return TimeKind::kPython;
    case CategoryKind::kRuntime:
    case CategoryKind::kDriver:
      return analysis::is_blocking_call(trace, links, slice) ? TimeKind::kWait : TimeKind::kCall;
    case CategoryKind::kKernel:
      return TimeKind::kCompute;
    case CategoryKind::kGpuMemcpy:
    case CategoryKind::kGpuMemset:
      return TimeKind::kCopy;
    case CategoryKind::kCudaSync:
    case CategoryKind::kCudaEvent:
      return TimeKind::kWait;
    case CategoryKind::kCommunication:
      return TimeKind::kCommunication;
    default:
      return TimeKind::kOther;
  }
}

}  // namespace

class LaneMaker {
 public:
  LaneMaker(Lanes& lanes, const Facts& facts) : out_(lanes), facts_(facts), trace_(*facts.trace) {}

  void run() {
    find_span();
    find_kinds();
    out_.index_.reserve(trace_.slices().size());
    std::array<std::uint32_t, Lanes::kParts> none;
    none.fill(kNoLane);
    out_.lanes_of_track_.assign(trace_.tracks().size(), none);
    add_steps();
    for (std::uint32_t i = 0; i < trace_.tracks().size(); ++i)
      if (trace_.tracks()[i].kind != TrackKind::kAsync) add_track(TrackId{i});
    add_async_tracks();
    add_idle();
    add_queues();
    add_memory();
    add_counters();
    choose();
    put_in_order();
  }

 private:
  void find_span() {
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
    out_.origin_ns_ = first;
    out_.end_ns_ = std::max(last, first + 1);
  }

  void find_kinds() {
    out_.kinds_.resize(trace_.slices().size());
    out_.name_uses_.assign(trace_.strings().size(), NameUse::kOther);
    for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) {
      out_.kinds_[i] = kind_of(trace_, facts_.links, SliceId{i});
      const CategoryKind kind = trace_.kind(SliceId{i});
      NameUse& use = out_.name_uses_[raw(trace_.slices().name[i])];
      if (is_device_work(kind)) use = NameUse::kWork;
      if ((kind == CategoryKind::kPythonFunction || kind == CategoryKind::kPythonSample) &&
          use == NameUse::kOther)
        use = NameUse::kFrame;
    }
    for (const auto& device : facts_.devices)
      for (const auto& work : device.timeline.work)
        out_.kinds_[raw(work.slice)] = kind_of(work.work);
  }

  std::uint32_t group(const LaneGroup& wanted) {
    for (std::uint32_t i = 0; i < out_.groups_.size(); ++i) {
      const LaneGroup& each = out_.groups_[i];
      if (each.kind == wanted.kind && each.process == wanted.process &&
          each.device == wanted.device)
        return i;
    }
    out_.groups_.push_back(wanted);
    return static_cast<std::uint32_t>(out_.groups_.size() - 1);
  }

  std::uint32_t group_of(const Track& track) {
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

  template <typename Key>
  std::uint32_t cached_group(std::map<Key, std::uint32_t>& known, Key key,
                             const LaneGroup& wanted) {
    const auto [entry, is_new] = known.emplace(key, 0);
    if (is_new) {
      out_.groups_.push_back(wanted);
      entry->second = static_cast<std::uint32_t>(out_.groups_.size() - 1);
    }
    return entry->second;
  }

  std::uint32_t device_group(std::int64_t device) {
    return cached_group(device_groups_, device, {LaneGroup::Kind::kGpu, kNone<ProcessId>, device});
  }

  std::uint32_t trace_group() { return group({LaneGroup::Kind::kTrace, kNone<ProcessId>, {}}); }

  // One row of slices that do not overlap.
  template <typename Items>
  void add_row(Lane& lane, const Items& items) {
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

  void add_steps() {
    if (!facts_.steps.marked) return;
    std::vector<LevelSlice> items;
    for (std::uint32_t i = 0; i < facts_.steps.steps.size(); ++i) {
      const auto& step = facts_.steps.steps[i];
      if (!items.empty() && items.back().start_ns + std::max<std::int64_t>(items.back().dur_ns, 1) >
                                step.cpu_start_ns)
        continue;  // two of no length at one time
      items.push_back({step.cpu_start_ns, step.cpu_end_ns - step.cpu_start_ns, i});
    }
    if (items.empty()) return;
    Lane lane{.kind = LaneKind::kSteps, .group = trace_group(), .is_main = true};
    add_row(lane, items);
    out_.lanes_.push_back(lane);
  }

  // Slices in order of start, with the row of each, become the rows of one lane.
  struct Placed {
    std::uint32_t slice, row;
  };
  void add_lane(Lane lane, const std::vector<Placed>& placed) {
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

  template <typename Rows>
  void place(Rows rows, const std::vector<std::uint32_t>& slices,
             std::vector<Placed>& placed) const {
    placed.clear();
    for (const std::uint32_t slice : slices)
      placed.push_back(
          {slice, rows.place(trace_.slices().start_ns[slice], trace_.slices().dur_ns[slice])});
  }

  void add_track(TrackId id) {
    const Track& track = trace_.track(id);
    if (track.slice_count == 0) return;
    for (auto& part : parts_) part.clear();
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
      parts_[part_of(track.kind, trace_.kind(SliceId{i}))].push_back(i);
    for (std::uint8_t part = 0; part < Lanes::kParts; ++part) {
      if (parts_[part].empty()) continue;
      Lane lane{.kind = lane_kind(track.kind, static_cast<Part>(part)),
                .group = group_of(track),
                .track = id,
                .device = track.device};
      if (lane.kind == LaneKind::kGpu || lane.kind == LaneKind::kSync)
        place(FirstFreeRows(), parts_[part], placed_);
      else
        place(NestedRows(), parts_[part], placed_);
      out_.lanes_of_track_[raw(id)][part] = static_cast<std::uint32_t>(out_.lanes_.size());
      add_lane(lane, placed_);
    }
  }

  // Async ids are many; those of one process and category share a lane.
  void add_async_tracks() {
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
        for (std::uint32_t i = 0; i < track.slice_count; ++i)
          slices.push_back(track.first_slice + i);
        out_.lanes_of_track_[raw(id)][0] = static_cast<std::uint32_t>(out_.lanes_.size());
      }
      std::stable_sort(slices.begin(), slices.end(), [&](std::uint32_t a, std::uint32_t b) {
        return trace_.slices().start_ns[a] < trace_.slices().start_ns[b];
      });
      place(FirstFreeRows(), slices, placed_);
      const Track& first = trace_.track(tracks.front());
      add_lane({.kind = LaneKind::kAsync, .group = group_of(first), .track = tracks.front()},
               placed_);
    }
  }

  void add_idle() {
    out_.idle_lane_.resize(facts_.devices.size());
    for (std::uint32_t device = 0; device < facts_.devices.size(); ++device) {
      const auto& gaps = facts_.devices[device].gaps;
      std::vector<LevelSlice> items;
      for (std::uint32_t gap = 0; gap < gaps.gaps.size(); ++gap) {
        const auto& each = gaps.gaps[gap];
        for (std::uint32_t part = each.first_part; part < each.first_part + each.part_count;
             ++part) {
          const auto& time = gaps.parts[part];
          items.push_back({time.start_ns, time.end_ns - time.start_ns,
                           static_cast<std::uint32_t>(out_.idle_items_.size())});
          out_.idle_items_.push_back({device, gap, part});
        }
      }
      if (items.empty()) continue;
      const std::int64_t number = facts_.devices[device].timeline.device;
      Lane lane{.kind = LaneKind::kIdle, .group = device_group(number), .device = number};
      add_row(lane, items);
      out_.lanes_.push_back(lane);
    }
  }

  void add_counter(Lane lane, CounterSeries series) {
    if (series.size() == 0) return;
    series.finish();
    lane.kind = LaneKind::kCounter;
    lane.counter = static_cast<std::uint32_t>(out_.counters_.size());
    lane.slice_count = series.size();
    out_.counters_.push_back(std::move(series));
    out_.lanes_.push_back(lane);
  }

  void add_queues() {
    for (const auto& device : facts_.devices) {
      const analysis::LaunchQueue queue =
          analysis::compute_launch_queue(trace_, facts_.links, device.timeline);
      CounterSeries series;
      std::size_t launched = 0, began = 0;
      while (launched < queue.launched_ns.size() || began < queue.began_ns.size()) {
        const bool is_launch = began == queue.began_ns.size() ||
                               (launched < queue.launched_ns.size() &&
                                queue.launched_ns[launched] <= queue.began_ns[began]);
        const std::int64_t time =
            is_launch ? queue.launched_ns[launched++] : queue.began_ns[began++];
        series.add(time, static_cast<double>(launched) - static_cast<double>(began));
      }
      const std::int64_t number = device.timeline.device;
      add_counter({.group = device_group(number),
                   .device = number,
                   .source = CounterSource::kQueueDepth,
                   .unit = CounterUnit::kCount},
                  std::move(series));
    }
  }

  void add_memory() {
    for (const auto& device : facts_.memory.devices) {
      CounterSeries allocated, reserved;
      for (const auto& sample : device.samples) {
        allocated.add(sample.time_ns, static_cast<double>(sample.allocated));
        if (device.has_reserved && sample.reserved > 0)
          reserved.add(sample.time_ns, static_cast<double>(sample.reserved));
      }
      Lane lane{.group = device.is_accelerator() ? device_group(device.id) : cpu_group(),
                .source = CounterSource::kAllocated,
                .unit = CounterUnit::kBytes};
      if (device.is_accelerator()) lane.device = device.id;
      add_counter(lane, std::move(allocated));
      lane.source = CounterSource::kReserved;
      add_counter(lane, std::move(reserved));
    }
  }

  std::uint32_t cpu_group() {
    if (facts_.main_thread != kNone<TrackId>) return group_of(trace_.track(facts_.main_thread));
    for (const Track& track : trace_.tracks())
      if (track.kind == TrackKind::kThread) return group_of(track);
    return trace_group();
  }

  // A counter of a process that has streams belongs to their device.
  const Track& counted_by(const Track& counter) const {
    for (const Track& track : trace_.tracks())
      if (track.kind == TrackKind::kStream && track.process == counter.process) return track;
    return counter;
  }

  void add_counters() {
    const auto& counters = trace_.counters();
    for (std::size_t i = 0; i < counters.size();) {
      const TrackId track = counters.track[i];
      CounterSeries series;
      for (; i < counters.size() && counters.track[i] == track; ++i)
        series.add(counters.time_ns[i], counters.value[i]);
      Lane lane{.group = group_of(counted_by(trace_.track(track))), .track = track};
      add_counter(lane, std::move(series));
    }
  }

  // The samples of a thread's Python stack are on a track of their own, "<thread> sampled".
  bool has_samples_of(const Lane& lane, TrackId thread) const {
    if (lane.kind != LaneKind::kPython || lane.track == kNone<TrackId>) return false;
    const Track &samples = trace_.track(lane.track), &sampled = trace_.track(thread);
    return samples.tid.is_text && !sampled.tid.is_text && samples.process == sampled.process &&
           trace_.text(samples.tid.text) == std::to_string(sampled.tid.number) + " sampled";
  }

  void choose() {
    TrackId thread = facts_.main_thread;
    if (thread == kNone<TrackId> && facts_.cpu) thread = facts_.cpu->thread;
    if (thread == kNone<TrackId>) thread = busiest_thread();
    main_thread_ = thread;
    std::optional<std::int64_t> device;
    if (facts_.main_device) device = facts_.device().timeline.device;
    main_group_ = thread == kNone<TrackId> ? kNoLane : group_of(trace_.track(thread));
    const std::int64_t span = out_.end_ns_ - out_.origin_ns_;
    std::map<std::int64_t, std::int64_t> busiest_stream;  // by device; -1: unknown
    for (const Lane& lane : out_.lanes_)
      if (lane.kind == LaneKind::kGpu) {
        auto& most = busiest_stream[lane.device.value_or(-1)];
        most = std::max(most, lane.busy_ns);
      }
    // Steps may run on another thread than the one that launches most, as with autograd's.
    const TrackId step_thread = facts_.cpu ? facts_.cpu->thread : kNone<TrackId>;
    for (Lane& lane : out_.lanes_) {
      const bool own_thread =
          thread != kNone<TrackId> && (lane.track == thread || has_samples_of(lane, thread));
      const bool own_device = device && lane.device == device;
      switch (lane.kind) {
        case LaneKind::kSteps:
          break;
        case LaneKind::kCpu:
        case LaneKind::kPython:
          lane.is_main = own_thread || (lane.kind == LaneKind::kCpu && lane.track == step_thread);
          lane.is_quiet = !lane.is_main && lane.busy_ns * kQuietThreadPart < span;
          break;
        case LaneKind::kGpu: {
          const std::int64_t most = busiest_stream[lane.device.value_or(-1)];
          lane.is_quiet = lane.busy_ns * kQuietStreamPart < most;
          break;
        }
        case LaneKind::kIdle:
          lane.is_main = own_device;
          break;
        case LaneKind::kCounter:
          lane.is_main = own_device && (lane.source == CounterSource::kQueueDepth ||
                                        lane.source == CounterSource::kAllocated);
          lane.is_quiet = lane.source == CounterSource::kReserved;
          break;
        case LaneKind::kAnnotation:
        case LaneKind::kSync:
          lane.is_quiet = true;
          break;
        case LaneKind::kAsync:
          lane.is_quiet = lane.busy_ns * kQuietThreadPart < span;
          break;
      }
    }
    if (device)
      mark_busiest(kMostMainStreams, kMostMainStreams, [&](const Lane& lane) {
        return lane.kind == LaneKind::kGpu && lane.device == device;
      });
    else  // other threads, and other accelerators, whose work is recorded as that of threads
      mark_busiest(kMostOtherMain, kMostOtherMainOfGroup, [](const Lane& lane) {
        return lane.kind == LaneKind::kCpu && lane.slice_count > 1;
      });
  }

  // The busiest lanes that are not quiet also matter. Ties: the first.
  template <typename Belongs>
  void mark_busiest(std::size_t most, std::size_t most_of_group, Belongs belongs) {
    std::vector<Lane*> found;
    for (Lane& lane : out_.lanes_)
      if (!lane.is_main && !lane.is_quiet && belongs(lane)) found.push_back(&lane);
    std::stable_sort(found.begin(), found.end(),
                     [](const Lane* a, const Lane* b) { return a->busy_ns > b->busy_ns; });
    std::map<std::uint32_t, std::size_t> of_group;
    for (Lane* lane : found) {
      if (most == 0) break;
      if (of_group[lane->group]++ >= most_of_group) continue;
      lane->is_main = true;
      --most;
    }
  }

  TrackId busiest_thread() const {
    const Lane* most = nullptr;
    for (const Lane& lane : out_.lanes_)
      if (lane.kind == LaneKind::kCpu && (!most || lane.busy_ns > most->busy_ns)) most = &lane;
    return most ? most->track : kNone<TrackId>;
  }

  // Steps; the main process; devices; other processes. Inside of a group: what matters most first.
  void put_in_order() {
    const auto group_rank = [&](const Lane& lane) {
      const LaneGroup& each = out_.groups_[lane.group];
      if (each.kind == LaneGroup::Kind::kTrace) return 0;
      if (lane.group == main_group_) return 1;
      if (each.kind == LaneGroup::Kind::kGpu && each.device)
        return facts_.main_device && *each.device == facts_.device().timeline.device ? 2 : 3;
      return each.kind == LaneGroup::Kind::kGpu ? 4 : 5;
    };
    // Of a thread: its frames above its operators. Of a device: idle times, streams, counters.
    const auto kind_rank = [](LaneKind kind) {
      static constexpr std::array<int, kLaneKindCount> kRank{0, 3, 2, 5, 6, 7, 4, 1, 8};
      return kRank[static_cast<std::size_t>(kind)];
    };
    std::vector<std::uint32_t> order(out_.lanes_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::map<std::uint32_t, std::int64_t> thread_busy;  // of a thread's operators, for its frames
    for (const Lane& lane : out_.lanes_)
      if (lane.kind == LaneKind::kCpu || lane.kind == LaneKind::kPython) {
        auto& busy = thread_busy[raw(lane.track)];
        busy = std::max(busy, lane.busy_ns);
      }
    const auto key = [&](std::uint32_t i) {
      const Lane& lane = out_.lanes_[i];
      const bool is_thread = lane.kind == LaneKind::kCpu || lane.kind == LaneKind::kPython;
      const std::int64_t busy = is_thread ? thread_busy[raw(lane.track)] : lane.busy_ns;
      const bool is_other_thread = is_thread && lane.track != main_thread_;
      return std::tuple(group_rank(lane), lane.group, lane.is_quiet, !lane.is_main,
                        is_thread ? 3 : kind_rank(lane.kind), is_other_thread, -busy,
                        raw(lane.track), kind_rank(lane.kind), i);
    };
    std::vector<decltype(key(0))> keys;
    for (const std::uint32_t i : order) keys.push_back(key(i));
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
    std::vector<Lane> sorted;
    std::vector<std::uint32_t> place_of(order.size());
    for (const std::uint32_t i : order) {
      place_of[i] = static_cast<std::uint32_t>(sorted.size());
      sorted.push_back(out_.lanes_[i]);
    }
    out_.lanes_ = std::move(sorted);
    for (auto& lanes : out_.lanes_of_track_)
      for (std::uint32_t& lane : lanes)
        if (lane != kNoLane) lane = place_of[lane];
    for (std::uint32_t i = 0; i < out_.lanes_.size(); ++i)
      if (out_.lanes_[i].kind == LaneKind::kIdle)
        for (std::size_t device = 0; device < facts_.devices.size(); ++device)
          if (facts_.devices[device].timeline.device == *out_.lanes_[i].device)
            out_.idle_lane_[device] = i;
  }

  Lanes& out_;
  const Facts& facts_;
  const Trace& trace_;
  std::map<std::int64_t, std::uint32_t> device_groups_;
  std::map<std::uint32_t, std::uint32_t> process_groups_, process_gpu_groups_;
  std::uint32_t main_group_ = kNoLane;
  TrackId main_thread_ = kNone<TrackId>;
  std::array<std::vector<std::uint32_t>, Lanes::kParts> parts_;
  std::vector<Placed> placed_;
};

Lanes::Lanes(const Facts& facts) : facts_(&facts) { LaneMaker(*this, facts).run(); }

const analysis::IdlePart& Lanes::idle_part(std::uint32_t item) const {
  return facts_->devices[idle_items_[item].device].gaps.parts[idle_items_[item].part];
}

const analysis::Gap& Lanes::gap(std::uint32_t item) const {
  return facts_->devices[idle_items_[item].device].gaps.gaps[idle_items_[item].gap];
}

std::optional<LanePlace> Lanes::place(SliceId slice) const {
  const Trace& trace = *facts_->trace;
  if (raw(slice) >= trace.slices().size()) return std::nullopt;
  const TrackId track = trace.slices().track[raw(slice)];
  const std::uint32_t number =
      lanes_of_track_[raw(track)][part_of(trace.track(track).kind, trace.kind(slice))];
  if (number == kNoLane) return std::nullopt;
  const Lane& lane = lanes_[number];
  for (std::uint32_t row = 0; row < lane.row_count; ++row) {
    const std::size_t at = index_.lower_bound(lane.first_row + row, trace.start_ns(slice));
    if (at < index_.size(lane.first_row + row) &&
        index_.slice(lane.first_row + row, at).id == raw(slice))
      return LanePlace{number, row, at};
  }
  return std::nullopt;
}

}  // namespace lanescope::view
