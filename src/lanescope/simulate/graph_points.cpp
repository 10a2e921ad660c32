#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/simulate/graph_draft.h"

namespace lanescope::simulate {
namespace {

// The order of points at equal times: work follows work that ended, and a call returns after that.
enum class Rank : std::uint8_t { kHost, kWorkEnd, kWorkStart, kEmptyWorkEnd, kAfterWait };

struct DraftPoint {
  std::int64_t time_ns;
  Rank rank;
  std::uint32_t id;
  bool operator<(const DraftPoint& other) const {
    return std::tie(time_ns, rank, id) < std::tie(other.time_ns, other.rank, other.id);
  }
};

void add_threads(GraphDraft& draft) {
  draft.thread_of.assign(draft.trace.tracks().size(), kNoIndex);
  draft.next_id = 1;  // 0 is the origin
  for (std::uint32_t i = 0; i < draft.trace.tracks().size(); ++i) {
    const Track& track = draft.trace.track(TrackId{i});
    if (track.kind != TrackKind::kThread || track.slice_count == 0) continue;
    DraftThread thread{TrackId{i}, draft.next_id, {}};
    const std::int64_t begin = draft.trace.start_ns(SliceId{track.first_slice});
    std::int64_t end = begin;
    for (std::uint32_t s = track.first_slice; s < track.first_slice + track.slice_count; ++s)
      end = std::max(end, draft.trace.end_ns(SliceId{s}));
    thread.points.reserve(std::size_t{track.slice_count} * 2);
    draft.in.host.visit(TrackId{i}, begin, end,
                        [&](SliceId slice, std::int64_t from, std::int64_t) {
                          thread.points.push_back({from, slice});
                        });
    if (thread.points.empty() ||
        (thread.points.size() == 1 && thread.points[0].slice == kNone<SliceId>))
      continue;
    thread.points.push_back({end, kNone<SliceId>});
    draft.next_id += static_cast<std::uint32_t>(thread.points.size());
    draft.thread_of[i] = static_cast<std::uint32_t>(draft.threads.size());
    draft.threads.push_back(std::move(thread));
  }
  draft.host_end = draft.next_id;
}

void add_works(GraphDraft& draft) {
  std::size_t count = 0;
  for (const analysis::DeviceTimeline* device : draft.in.devices) count += device->work.size();
  draft.graph.works.reserve(count);
  for (std::size_t d = 0; d < draft.in.devices.size(); ++d) {
    for (const analysis::DeviceWork& each : draft.in.devices[d]->work) {
      GpuWork work;
      work.slice = each.slice;
      work.launch = draft.in.links.launch_of[raw(each.slice)];
      work.work = each.work;
      work.before_recording = each.before_recording;
      work.on_main_device = d == draft.in.main_device;
      draft.graph.work_without_launch_count += work.launch == kNone<SliceId>;
      draft.graph.works.push_back(work);
    }
  }
  std::sort(draft.graph.works.begin(), draft.graph.works.end(),
            [&](const GpuWork& a, const GpuWork& b) {
              return std::pair(draft.trace.start_ns(a.slice), raw(a.slice)) <
                     std::pair(draft.trace.start_ns(b.slice), raw(b.slice));
            });
  std::unordered_map<std::uint32_t, std::uint32_t> last;  // by track
  draft.work_of.assign(draft.trace.slices().size(), kNoIndex);
  for (std::uint32_t i = 0; i < draft.graph.works.size(); ++i) {
    draft.work_of[raw(draft.graph.works[i].slice)] = i;
    const std::uint32_t track = raw(draft.trace.slices().track[raw(draft.graph.works[i].slice)]);
    if (const auto before = last.find(track); before != last.end()) {
      draft.graph.works[i].previous = before->second;
      draft.graph.works[before->second].next = i;
    }
    last[track] = i;
    draft.graph.works[i].start = draft.host_end + 2 * i;
    draft.graph.works[i].end = draft.host_end + 2 * i + 1;
  }
  draft.next_id = draft.host_end + 2 * static_cast<std::uint32_t>(draft.graph.works.size());
  draft.by_end.resize(draft.graph.works.size());
  for (std::uint32_t i = 0; i < draft.by_end.size(); ++i) draft.by_end[i] = i;
  std::sort(draft.by_end.begin(), draft.by_end.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(draft.end_ns(a), a) < std::pair(draft.end_ns(b), b);
  });
}

// Times and the order of points. A point at which a waiting call ends comes after work that ends
// at the same time.
void number_points(GraphDraft& draft) {
  std::vector<DraftPoint> points;
  points.reserve(draft.next_id);
  // Threads, starts and ends are each in order, so they are merged instead of sorted.
  const auto merge_from = [&](std::size_t first) {
    const auto middle = points.begin() + static_cast<std::ptrdiff_t>(first);
    if (!std::is_sorted(middle, points.end())) std::sort(middle, points.end());
    std::inplace_merge(points.begin(), middle, points.end());
  };
  for (const DraftThread& thread : draft.threads) {
    const std::size_t first = points.size();
    for (std::uint32_t i = 0; i < thread.points.size(); ++i) {
      const bool after_call = i > 0 && draft.is_call(thread.points[i - 1].slice);
      points.push_back({thread.points[i].time_ns, after_call ? Rank::kAfterWait : Rank::kHost,
                        thread.first + i});
    }
    merge_from(first);
  }
  std::size_t first = points.size();
  for (const GpuWork& work : draft.graph.works)
    points.push_back({draft.trace.start_ns(work.slice), Rank::kWorkStart, work.start});
  merge_from(first);
  first = points.size();
  for (const std::uint32_t i : draft.by_end) {
    const GpuWork& work = draft.graph.works[i];
    points.push_back({draft.trace.end_ns(work.slice),
                      draft.trace.dur_ns(work.slice) > 0 ? Rank::kWorkEnd : Rank::kEmptyWorkEnd,
                      work.end});
  }
  merge_from(first);
  draft.position.assign(draft.next_id, 0);
  draft.graph.time_ns.assign(draft.next_id, 0);
  draft.graph.time_ns[0] = points.empty() ? 0 : points.front().time_ns;
  for (std::uint32_t i = 0; i < points.size(); ++i) {
    draft.position[points[i].id] = i + 1;
    draft.graph.time_ns[i + 1] = points[i].time_ns;
  }
}

}  // namespace

void add_points(GraphDraft& draft) {
  add_threads(draft);
  add_works(draft);
  number_points(draft);
}

}  // namespace lanescope::simulate
