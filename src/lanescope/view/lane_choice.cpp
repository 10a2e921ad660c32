// Which lanes matter, and their order.
#include <algorithm>
#include <string>
#include <tuple>

#include "lanescope/view/lane_maker.h"

namespace lanescope::view {
namespace {

// A thread that is busy for less than this part of the recording, or a stream for less than this
// part of its device's busiest stream, is quiet.
constexpr std::int64_t kQuietThreadPart = 50, kQuietStreamPart = 200;
// Lanes that matter: streams of the main device; without one, threads besides the main one.
constexpr std::size_t kMostMainStreams = 4, kMostOtherMain = 6, kMostOtherMainOfGroup = 2;

}  // namespace

// The samples of a thread's Python stack are on a track of their own, "<thread> sampled".
bool LaneMaker::has_samples_of(const Lane& lane, TrackId thread) const {
  if (lane.kind != LaneKind::kPython || lane.track == kNone<TrackId>) return false;
  const Track &samples = trace_.track(lane.track), &sampled = trace_.track(thread);
  return samples.tid.is_text && !sampled.tid.is_text && samples.process == sampled.process &&
         trace_.text(samples.tid.text) == std::to_string(sampled.tid.number) + " sampled";
}

// The busiest lanes that are not quiet also matter. Ties: the first.
template <typename Belongs>
void LaneMaker::mark_busiest(std::size_t most, std::size_t most_of_group, Belongs belongs) {
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

void LaneMaker::choose() {
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

TrackId LaneMaker::busiest_thread() const {
  const Lane* most = nullptr;
  for (const Lane& lane : out_.lanes_)
    if (lane.kind == LaneKind::kCpu && (!most || lane.busy_ns > most->busy_ns)) most = &lane;
  return most ? most->track : kNone<TrackId>;
}

// Steps; the main process; devices; other processes. Inside of a group: what matters most first.
std::vector<std::uint32_t> LaneMaker::order_of_lanes() const {
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
                      is_thread ? 3 : kind_rank(lane.kind), is_other_thread, -busy, raw(lane.track),
                      kind_rank(lane.kind), i);
  };
  std::vector<decltype(key(0))> keys;
  for (const std::uint32_t i : order) keys.push_back(key(i));
  std::sort(order.begin(), order.end(),
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
  for (std::uint32_t i = 0; i < out_.lanes_.size(); ++i)
    if (out_.lanes_[i].kind == LaneKind::kIdle)
      for (std::size_t device = 0; device < facts_.devices.size(); ++device)
        if (facts_.devices[device].timeline.device == *out_.lanes_[i].device)
          out_.idle_lane_[device] = i;
}

}  // namespace lanescope::view
