// Which lanes matter, and their order.
#include <algorithm>
#include <string>
#include <tuple>

#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/view/lane_maker.h"

namespace lanescope::view {
namespace {

// A thread that is busy for less than this part of the recording, or a stream for less than this
// part of its device's busiest stream, is quiet.
constexpr std::int64_t kQuietThreadPart = 50, kQuietStreamPart = 200;
// Lanes that matter: streams of the main device; without one, threads besides the main one.
constexpr std::size_t kMostMainStreams = 4, kMostOtherMain = 6, kMostOtherMainOfGroup = 2,
                      kMostThreadsBesideDevice = 2;
// Other threads that matter: those that launch at least this part of the main device's work.
constexpr std::int64_t kLauncherPart = 10;
constexpr std::size_t kMostLaunchers = 2;
constexpr std::size_t kMostStreamsOfRank = 2;
// A first screen has room for these and the row of steps.
constexpr std::size_t kMostMain = 5;

}  // namespace

// The samples of a thread's Python stack are on a track of their own, "<thread> sampled".
bool LaneMaker::has_samples_of(const Lane& lane, TrackId thread) const {
  if (lane.kind != LaneKind::kPython || lane.track == kNone<TrackId>) return false;
  const Track &samples = trace_.track(lane.track), &sampled = trace_.track(thread);
  return samples.tid.is_text && !sampled.tid.is_text && samples.process == sampled.process &&
         trace_.text(samples.tid.text) == std::to_string(sampled.tid.number) + " sampled";
}

void LaneMaker::mark_busiest(std::vector<Candidate> candidates, std::size_t most,
                             std::size_t most_of_group) {
  sort_rows(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.busy > b.busy; });
  std::map<std::uint32_t, std::size_t> of_group;
  for (const Candidate& each : candidates) {
    Lane& lane = out_.lanes_[each.lane];
    if (most == 0) break;
    if (of_group[lane.group]++ >= most_of_group) continue;
    lane.is_main = true;
    --most;
  }
}

void LaneMaker::mark_streams(std::int64_t device) {
  std::vector<Candidate> found;
  for (std::uint32_t i = 0; i < out_.lanes_.size(); ++i) {
    const Lane& lane = out_.lanes_[i];
    if (lane.kind == LaneKind::kGpu && lane.device == device && !lane.is_quiet)
      found.push_back({i, lane.busy_ns});
  }
  mark_busiest(std::move(found), kMostMainStreams, kMostMainStreams);
}

// The forward pass and autograd's backward pass launch from two threads.
void LaneMaker::mark_launchers() {
  std::map<std::uint32_t, std::int64_t> launches;  // by track
  std::int64_t all = 0;
  for (const auto& work : facts_.device().timeline.work) {
    const SliceId launch = facts_.links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId>) continue;
    ++launches[raw(trace_.slices().track[raw(launch)])];
    ++all;
  }
  std::vector<Candidate> found;
  for (std::uint32_t i = 0; i < out_.lanes_.size(); ++i) {
    const Lane& lane = out_.lanes_[i];
    if (lane.kind != LaneKind::kCpu || lane.is_main) continue;
    const auto own = launches.find(raw(lane.track));
    if (own != launches.end() && own->second * kLauncherPart >= all)
      found.push_back({i, own->second});
  }
  mark_busiest(std::move(found), kMostLaunchers, kMostLaunchers);
}

// Marks, for each rank, the thread that is busiest, its idle times, the two busiest streams.
void LaneMaker::mark_lanes_of_ranks() {
  std::map<std::int64_t, std::vector<Candidate>> threads, streams;
  for (std::uint32_t i = 0; i < out_.lanes_.size(); ++i) {
    Lane& lane = out_.lanes_[i];
    const auto rank = out_.rank_of(lane);
    lane.is_main = lane.kind == LaneKind::kSteps;
    if (!rank) continue;
    if (lane.kind == LaneKind::kCpu) threads[*rank].push_back({i, lane.busy_ns});
    if (lane.kind == LaneKind::kGpu) streams[*rank].push_back({i, lane.busy_ns});
    if (lane.kind == LaneKind::kIdle) lane.is_main = true;
  }
  for (auto& [rank, found] : threads) mark_busiest(std::move(found), 1, 1);
  for (auto& [rank, found] : streams)
    mark_busiest(std::move(found), kMostStreamsOfRank, kMostStreamsOfRank);
}

// By the time in which they did something: a stream that waits is not busy.
void LaneMaker::mark_device_threads() {
  std::map<std::uint32_t, std::int64_t> work_ns;  // by track
  for (const analysis::VendorRow& row : vendor_rows_)
    if (row.kind != analysis::VendorRowKind::kWait && !row.is_sum)
      work_ns[raw(trace_.slices().track[raw(row.slice)])] += trace_.dur_ns(row.slice);
  std::vector<Candidate> found;
  for (std::uint32_t i = 0; i < out_.lanes_.size(); ++i) {
    const Lane& lane = out_.lanes_[i];
    if (lane.kind != LaneKind::kDevice) continue;
    if (const auto own = work_ns.find(raw(lane.track)); own != work_ns.end())
      found.push_back({i, own->second});
  }
  mark_busiest(std::move(found), kMostMainStreams, kMostMainStreams);
}

void LaneMaker::mark_other_threads(std::size_t most) {
  std::vector<Candidate> found;
  for (std::uint32_t i = 0; i < out_.lanes_.size(); ++i) {
    const Lane& lane = out_.lanes_[i];
    if (lane.kind == LaneKind::kCpu && lane.slice_count > 1 && !lane.is_main && !lane.is_quiet)
      found.push_back({i, lane.busy_ns});
  }
  mark_busiest(std::move(found), most, kMostOtherMainOfGroup);
}

// Keeps the few lanes that a first screen shows: what the main thread did, the busiest stream, the
// idle times, a second stream, a second thread, Python, then the rest. A trace of no such program shows all if they are few.
void LaneMaker::keep_few() {
  const auto is_counted = [](const Lane& lane) { return lane.kind != LaneKind::kSteps; };
  const auto loud = std::count_if(out_.lanes_.begin(), out_.lanes_.end(), [&](const Lane& lane) {
    return is_counted(lane) && !lane.is_quiet;
  });
  const bool is_of_program = facts_.main_device || facts_.cpu || facts_.vendor;
  if (!is_of_program && static_cast<std::size_t>(loud) <= kMostMain) {
    for (Lane& lane : out_.lanes_) lane.is_main = lane.is_main || !lane.is_quiet;
    return;
  }
  std::vector<std::uint32_t> streams, others;
  for (std::uint32_t i = 0; i < out_.lanes_.size(); ++i) {
    const Lane& lane = out_.lanes_[i];
    if (!lane.is_main || !is_counted(lane)) continue;
    (lane.kind == LaneKind::kGpu || lane.kind == LaneKind::kDevice ? streams : others).push_back(i);
  }
  sort_rows(streams.begin(), streams.end(), [&](std::uint32_t a, std::uint32_t b) {
    return out_.lanes_[a].busy_ns > out_.lanes_[b].busy_ns;
  });
  // The first number decides; smaller is more important.
  std::vector<std::tuple<int, std::int64_t, std::uint32_t>> wanted;
  for (std::size_t i = 0; i < streams.size(); ++i)
    wanted.emplace_back(i == 0 ? 1 : i == 1 ? 3 : 6, 0, streams[i]);
  for (const std::uint32_t i : others) {
    const Lane& lane = out_.lanes_[i];
    const int rank = lane.kind == LaneKind::kIdle     ? 2
                     : lane.kind == LaneKind::kPython ? 5
                     : lane.kind == LaneKind::kCpu    ? (lane.track == main_thread_ ? 0 : 4)
                     : lane.source == CounterSource::kQueueDepth ? 7
                                                                 : 8;
    wanted.emplace_back(rank, -lane.busy_ns, i);
  }
  std::sort(wanted.begin(), wanted.end());
  for (std::size_t i = kMostMain; i < wanted.size(); ++i)
    out_.lanes_[std::get<2>(wanted[i])].is_main = false;
}

void LaneMaker::choose() {
  TrackId thread = facts_.main_thread;
  if (thread == kNone<TrackId> && facts_.cpu) thread = facts_.cpu->thread;
  if (thread == kNone<TrackId>) thread = busiest_thread();
  main_thread_ = thread;
  std::optional<std::int64_t> device;
  if (facts_.main_device) device = facts_.device().timeline.device;
  main_group_ = thread == kNone<TrackId> ? kNoLane : group_of(trace_.track(thread));
  const Wide span = wide(out_.end_ns()) - out_.origin_ns();
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
        lane.is_quiet = !lane.is_main && wide(lane.busy_ns) * kQuietThreadPart < span;
        break;
      case LaneKind::kGpu: {
        const std::int64_t most = busiest_stream[lane.device.value_or(-1)];
        lane.is_quiet = wide(lane.busy_ns) * kQuietStreamPart < most;
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
      case LaneKind::kDevice:
        lane.is_quiet = wide(lane.busy_ns) * kQuietThreadPart < span;
        break;
      case LaneKind::kAsync:
        lane.is_quiet = wide(lane.busy_ns) * kQuietThreadPart < span;
        break;
    }
  }
  if (!out_.rank_of_group_.empty()) {
    mark_lanes_of_ranks();
    return;
  }
  if (device) {
    mark_streams(*device);
    mark_launchers();
  } else if (facts_.vendor) {
    mark_device_threads();
    mark_other_threads(kMostThreadsBesideDevice);
  } else {
    mark_other_threads(kMostOtherMain);
  }
  keep_few();
}

TrackId LaneMaker::busiest_thread() const {
  const Lane* most = nullptr;
  for (const Lane& lane : out_.lanes_)
    if (lane.kind == LaneKind::kCpu && (!most || lane.busy_ns > most->busy_ns)) most = &lane;
  return most ? most->track : kNone<TrackId>;
}

// Steps; the main thread; devices, so that its work is in view; other threads and processes. Inside of
// a group: what matters most first.
std::vector<std::uint32_t> LaneMaker::order_of_lanes() const {
  const auto group_rank = [&](const Lane& lane) -> std::int64_t {
    const LaneGroup& each = out_.groups_[lane.group];
    if (each.kind == LaneGroup::Kind::kTrace) return 0;
    // One rank below the other, in each the CPU first.
    if (const auto rank = out_.rank_of(lane))
      return 10 + 2 * *rank + (each.kind == LaneGroup::Kind::kGpu ? 1 : 0);
    if (lane.kind == LaneKind::kDevice) return 2;
    const bool is_thread = lane.kind == LaneKind::kCpu || lane.kind == LaneKind::kPython;
    if (lane.group == main_group_)
      return is_thread && lane.track != main_thread_ && !has_samples_of(lane, main_thread_) ? 4 : 1;
    if (each.kind == LaneGroup::Kind::kGpu && each.device)
      return facts_.main_device && *each.device == facts_.device().timeline.device ? 2 : 3;
    return each.kind == LaneGroup::Kind::kGpu ? 4 : 5;
  };
  // A thread has its frames above its operators. A device has idle times, streams, counters.
  const auto kind_rank = [](LaneKind kind) {
    static constexpr std::array<int, kLaneKindCount> kRank{0, 3, 2, 5, 6, 7, 4, 1, 8, 5};
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
                      is_thread ? 3 : kind_rank(lane.kind), is_other_thread, -busy, raw(lane.track),
                      kind_rank(lane.kind), i);
  };
  std::vector<decltype(key(0))> keys;
  for (const std::uint32_t i : order) keys.push_back(key(i));
  sort_rows(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  return order;
}

void LaneMaker::put_in_order() {
  const std::vector<std::uint32_t> order = order_of_lanes();
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
}

}  // namespace lanescope::view
