#include "lanescope/analysis/host_wall.h"

#include <algorithm>

#include "lanescope/analysis/training_phases.h"

namespace lanescope::analysis {

HostWall& HostWall::operator+=(const HostWall& other) {
  wall_ns += other.wall_ns;
  for (std::size_t i = 0; i < kHostPartCount; ++i) part_ns[i] += other.part_ns[i];
  return *this;
}

HostWalls::HostWalls(const Trace& trace, const LaunchLinks& links, const HostTimeline& timeline,
                     unsigned threads)
    : trace_(trace), timeline_(timeline), part_of_(trace.slices().size(), HostPart::kOutside) {
  // With frames: time in Python code of a DataLoader is time in the DataLoader.
  const SliceNesting nesting =
      compute_slice_nesting(trace, {.python_frames = true, .threads = threads});
  const std::vector<Phase> phases = compute_training_phases(trace, links, nesting);
  for (std::uint32_t i = 0; i < part_of_.size(); ++i) {  // parents come before their children
    const SliceId around = nesting.parent[i];
    if (trace.name(SliceId{i}).ends_with("(dynamo_timed)") ||
        (around != kNone<SliceId> && part_of_[raw(around)] == HostPart::kCompile)) {
      part_of_[i] = HostPart::kCompile;
      continue;
    }
    switch (phases[i]) {
      case Phase::kLoader:
        part_of_[i] = HostPart::kLoader;
        break;
      case Phase::kBackward:
        part_of_[i] = HostPart::kBackward;
        break;
      case Phase::kOptimizer:
      case Phase::kZeroGrad:
        part_of_[i] = HostPart::kOptimizer;
        break;
      case Phase::kOther:
        if (trace.kind(SliceId{i}) == CategoryKind::kCpuOp ||
            (around != kNone<SliceId> && part_of_[raw(around)] == HostPart::kOperator))
          part_of_[i] = HostPart::kOperator;
        break;
    }
  }
  for (std::uint32_t i = 0; i < part_of_.size(); ++i)
    if (part_of_[i] == HostPart::kBackward)
      backward_[trace.track(SliceId{i}).process].add(trace.start_ns(SliceId{i}),
                                                     trace.end_ns(SliceId{i}));
  for (auto& [process, time] : backward_) time.finish();
}

HostWall HostWalls::of(TrackId thread, const Window& window) const {
  HostWall wall;
  wall.wall_ns = std::max<std::int64_t>(0, window.length_ns());
  const auto backward = backward_.find(trace_.track(thread).process);
  timeline_.visit(
      thread, window.start_ns, window.end_ns,
      [&](SliceId slice, std::int64_t from, std::int64_t to) {
        const HostPart part = slice == kNone<SliceId> ? HostPart::kOutside : part_of_[raw(slice)];
        const std::int64_t elsewhere = part == HostPart::kOutside && backward != backward_.end()
                                           ? backward->second.length_within_ns(from, to)
                                           : 0;
        wall.part_ns[static_cast<std::size_t>(part)] += to - from - elsewhere;
        wall.part_ns[static_cast<std::size_t>(HostPart::kBackward)] += elsewhere;
      });
  return wall;
}

TrackId busiest_host_thread(const Trace& trace, const SliceNesting& nesting) {
  std::vector<std::int64_t> time_ns(trace.tracks().size(), 0);
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (is_front_end(trace.kind(SliceId{i})) && nesting.depth[i] == 0)
      time_ns[raw(trace.slices().track[i])] += trace.dur_ns(SliceId{i});
  const auto most = std::max_element(time_ns.begin(), time_ns.end());
  if (most == time_ns.end() || *most <= 0) return kNone<TrackId>;
  return TrackId{static_cast<std::uint32_t>(most - time_ns.begin())};
}

TrackId step_thread(const Trace& trace, const SliceNesting& nesting, TrackId marks) {
  std::vector<std::int64_t> time_ns(trace.tracks().size(), 0);
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    if (trace.kind(SliceId{i}) != CategoryKind::kCpuOp) continue;
    const SliceId around = nesting.parent[i];
    if (around != kNone<SliceId> && trace.kind(around) == CategoryKind::kCpuOp) continue;
    if (trace.name(SliceId{i}).starts_with("autograd::engine")) continue;
    time_ns[raw(trace.slices().track[i])] += trace.dur_ns(SliceId{i});
  }
  TrackId best = marks;
  for (std::uint32_t i = 0; i < time_ns.size(); ++i)
    if (trace.track(TrackId{i}).process == trace.track(marks).process &&
        time_ns[i] > time_ns[raw(best)])
      best = TrackId{i};
  return time_ns[raw(best)] > 10 * time_ns[raw(marks)] ? best : marks;
}

}  // namespace lanescope::analysis
