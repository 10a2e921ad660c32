// The lanes of a piece of evidence. Each lane is read once. Neighbouring bars that are too short to
// be seen become one, so the size of a picture depends on its width and not on the trace.
#include "lanescope/view/evidence_scene.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "lanescope/base/sort_rows.h"

namespace lanescope::view {
namespace {

using analysis::DeviceWork;
using analysis::SliceNesting;
using analysis::WorkClass;
using explain::DeviceFacts;
using explain::Facts;
using Look = SceneBar::Look;

constexpr std::uint32_t kLookBack = 1024;  // slices before the window that may reach into it

Look look_of(CategoryKind kind) {
  if (kind == CategoryKind::kCpuOp) return Look::kOperator;
  if (kind == CategoryKind::kUserAnnotation) return Look::kAnnotation;
  if (kind == CategoryKind::kPythonFunction) return Look::kPython;
  return is_api_call(kind) ? Look::kCall : Look::kOther;
}

Look look_of(WorkClass work) {
  return work == WorkClass::kCompute         ? Look::kCompute
         : work == WorkClass::kCommunication ? Look::kCommunication
                                             : Look::kCopy;
}

class SceneMaker {
 public:
  SceneMaker(const Facts& facts, SliceId evidence)
      : facts_(facts), trace_(*facts.trace), evidence_(evidence) {
    scene_.evidence = evidence;
    scene_.window = evidence_window(facts, evidence);
    fold_ns_ = 2 * scene_.window.length_ns() / kWindowParts;
    scene_.is_clip = trace_.dur_ns(evidence) > scene_.window.length_ns();
  }

  Scene run() {
    const bool is_work = is_device_work(trace_.kind(evidence_));
    const SliceId launch = is_work ? facts_.links.launch_of[raw(evidence_)] : kNone<SliceId>;
    const bool is_nested = facts_.nesting.depth[raw(evidence_)] != SliceNesting::kNotNested;
    inner_ = is_work ? launch : is_nested ? evidence_ : kNone<SliceId>;
    TrackId thread = facts_.main_thread;
    if (trace_.kind(evidence_) == CategoryKind::kPythonFunction)
      thread = trace_.slices().track[raw(evidence_)];
    if (inner_ != kNone<SliceId>) thread = trace_.slices().track[raw(inner_)];
    for (SliceId up = inner_; up != kNone<SliceId>; up = facts_.nesting.parent[raw(up)])
      scene_.path.push_back(up);
    std::reverse(scene_.path.begin(), scene_.path.end());

    if (!is_work && !is_nested) add_own_track();
    if (thread != kNone<TrackId>) add_thread(thread);
    add_device(is_work);
    add_arrows(is_work);
    return std::move(scene_);
  }

 private:
  bool overlaps(std::int64_t start_ns, std::int64_t end_ns) const {
    return start_ns < scene_.window.end_ns && end_ns > scene_.window.start_ns;
  }

  // Adds a bar to its row, or folds it into the last bar of the row if both are too short. The
  // evidence itself is never folded.
  void add_bar(SceneLane& lane, SliceId slice, std::uint32_t row, Look look) {
    SceneBar bar{.slice = slice,
                 .start_ns = trace_.start_ns(slice),
                 .end_ns = trace_.end_ns(slice),
                 .row = row,
                 .busy_ns = trace_.dur_ns(slice),
                 .look = look,
                 .is_evidence = slice == evidence_};
    lane.row_count = std::max(lane.row_count, row + 1);
    if (last_in_row_.size() <= row) last_in_row_.resize(row + 1, kNothing);
    const std::size_t last = last_in_row_[row];
    if (last != kNothing && !bar.is_evidence && bar.end_ns - bar.start_ns < fold_ns_) {
      SceneBar& before = lane.bars[last];
      const bool before_is_short =
          before.folded_count > 1 || before.end_ns - before.start_ns < fold_ns_;
      if (before_is_short && !before.is_evidence && bar.end_ns - before.start_ns < 3 * fold_ns_) {
        if (bar.end_ns - bar.start_ns > trace_.dur_ns(before.slice)) {
          before.slice = slice;
          before.look = look;
        }
        before.end_ns = std::max(before.end_ns, bar.end_ns);
        before.busy_ns += bar.busy_ns;
        ++before.folded_count;
        return;
      }
    }
    last_in_row_[row] = lane.bars.size();
    lane.bars.push_back(bar);
  }

  void add_chain(SliceId slice, std::vector<SliceId>& open) const {
    for (; slice != kNone<SliceId>; slice = facts_.nesting.parent[raw(slice)])
      if (overlaps(trace_.start_ns(slice), trace_.end_ns(slice))) open.push_back(slice);
  }

  template <typename Each>
  void for_slices_in_window(TrackId id, Each each) const {
    const Track& track = trace_.track(id);
    const auto& starts = trace_.slices().start_ns;
    const auto begin = starts.begin() + track.first_slice, end = begin + track.slice_count;
    const auto first = std::lower_bound(begin, end, scene_.window.start_ns);
    // Slices that are open at the window's start: the last nested slice before it and its parents;
    // of slices that are not nested, all that reach into the window.
    std::vector<SliceId> open;
    bool found_nested = false;
    const auto before = static_cast<std::uint32_t>(first - starts.begin());
    for (std::uint32_t i = before, seen = 0; i > track.first_slice && seen < kLookBack; ++seen) {
      const SliceId slice{--i};
      const bool is_nested = facts_.nesting.depth[raw(slice)] != SliceNesting::kNotNested;
      if (!is_nested && overlaps(trace_.start_ns(slice), trace_.end_ns(slice)))
        open.push_back(slice);
      if (!is_nested || found_nested) continue;
      found_nested = true;
      add_chain(slice, open);
    }
    if (!scene_.path.empty() && trace_.slices().track[raw(scene_.path.back())] == id)
      for (const SliceId slice : scene_.path)
        if (trace_.start_ns(slice) < scene_.window.start_ns) add_chain(slice, open);
    std::sort(open.begin(), open.end());
    open.erase(std::unique(open.begin(), open.end()), open.end());
    for (const SliceId slice : open) each(slice);
    for (auto at = first; at != end && *at < scene_.window.end_ns; ++at)
      each(SliceId{static_cast<std::uint32_t>(at - starts.begin())});
  }

  SceneLane& begin_lane(SceneLane::Kind kind, TrackId track) {
    last_in_row_.clear();
    scene_.lanes.push_back({kind, track, 1, {}});
    return scene_.lanes.back();
  }

  // A track whose slices are not nested: the profiler's rows, Python frames. Rows are depths here
  // too: two above the evidence, its own, and one below it.
  void add_own_track() {
    const TrackId track = trace_.slices().track[raw(evidence_)];
    const CategoryKind kind = trace_.kind(evidence_);
    std::vector<std::pair<SliceId, std::uint32_t>> seen;
    std::vector<std::int64_t> open_ends;
    std::uint32_t evidence_depth = 0;
    for_slices_in_window(track, [&](SliceId slice) {
      if (trace_.kind(slice) != kind) return;
      while (!open_ends.empty() && (open_ends.back() <= trace_.start_ns(slice) ||
                                    open_ends.back() < trace_.end_ns(slice)))
        open_ends.pop_back();
      const auto depth = static_cast<std::uint32_t>(open_ends.size());
      if (slice == evidence_) evidence_depth = depth;
      seen.emplace_back(slice, depth);
      open_ends.push_back(trace_.end_ns(slice));
    });
    const std::uint32_t first = evidence_depth >= 2 ? evidence_depth - 2 : 0;
    SceneLane& lane = begin_lane(SceneLane::Kind::kOwnTrack, track);
    for (const auto& [slice, depth] : seen)
      if (depth >= first && depth <= evidence_depth + 1)
        add_bar(lane, slice, depth - first, look_of(kind));
  }

  void add_thread(TrackId thread) {
    // Rows of operators: the innermost one of the path and those above it; other rows are below.
    std::uint32_t inner_depth = 0, deepest = 0;
    for (const SliceId each : scene_.path)
      if (!is_api_call(trace_.kind(each))) inner_depth = facts_.nesting.depth[raw(each)];
    const std::uint32_t first_depth = inner_depth >= 4 ? inner_depth - 3 : 0;
    SceneLane& operators = begin_lane(SceneLane::Kind::kOperators, thread);
    for_slices_in_window(thread, [&](SliceId slice) {
      const std::uint32_t depth = facts_.nesting.depth[raw(slice)];
      if (depth == SliceNesting::kNotNested || is_api_call(trace_.kind(slice))) return;
      deepest = std::max(deepest, depth);
      if (depth >= first_depth && depth < first_depth + kMostOperatorRows)
        add_bar(operators, slice, depth - first_depth, look_of(trace_.kind(slice)));
    });
    if (deepest >= first_depth + kMostOperatorRows)
      scene_.deeper_row_count = deepest + 1 - first_depth - kMostOperatorRows;
    if (!facts_.main_device && !has_calls_in_window(thread)) return;  // no GPU, so no API calls
    SceneLane& calls = begin_lane(SceneLane::Kind::kCalls, thread);
    call_lane_ = scene_.lanes.size() - 1;
    std::vector<std::int64_t> row_ends(kMostSubRows, INT64_MIN);
    for_slices_in_window(thread, [&](SliceId slice) {
      if (!is_api_call(trace_.kind(slice))) return;
      const std::uint32_t row = free_row(row_ends, slice);
      row_of_[raw(slice)] = row;
      add_bar(calls, slice, row, Look::kCall);
    });
  }

  bool has_calls_in_window(TrackId thread) {
    bool found = false;
    for_slices_in_window(thread,
                         [&](SliceId slice) { found = found || is_api_call(trace_.kind(slice)); });
    return found;
  }

  // The first row that is free at the slice's start; the last row if none is.
  std::uint32_t free_row(std::vector<std::int64_t>& row_ends, SliceId slice) const {
    std::uint32_t row = 0;
    while (row + 1 < row_ends.size() && row_ends[row] > trace_.start_ns(slice)) ++row;
    row_ends[row] = std::max(row_ends[row], trace_.end_ns(slice));
    return row;
  }

  std::vector<const DeviceWork*> work_in_window(const DeviceFacts& device) const {
    const auto& work = device.timeline.work;
    auto at = std::lower_bound(
        work.begin(), work.end(), scene_.window.start_ns,
        [](const DeviceWork& each, std::int64_t time) { return each.start_ns < time; });
    at -= std::min<std::ptrdiff_t>(at - work.begin(), kLookBack);
    std::vector<const DeviceWork*> found;
    for (; at != work.end() && at->start_ns < scene_.window.end_ns; ++at)
      if (overlaps(at->start_ns, at->end_ns)) found.push_back(&*at);
    return found;
  }

  void add_device(bool is_work) {
    if (!facts_.main_device) return;
    const DeviceFacts* device = device_of_work(facts_, evidence_);
    if (!device) device = &facts_.device();
    scene_.device = device->timeline.device;
    const auto found = work_in_window(*device);
    std::map<TrackId, std::int64_t> time_of;
    for (const DeviceWork* work : found)
      time_of[trace_.slices().track[raw(work->slice)]] += work->end_ns - work->start_ns;
    std::vector<TrackId> streams;
    for (const auto& [track, time] : time_of) streams.push_back(track);
    const TrackId own =
        is_work ? trace_.slices().track[raw(evidence_)] : kNone<TrackId>;  // always shown, first
    sort_rows(streams.begin(), streams.end(), [&](TrackId a, TrackId b) {
      return (a == own) != (b == own) ? a == own : time_of[a] > time_of[b];
    });
    if (streams.size() > kMostStreams) {
      scene_.hidden_stream_count = static_cast<std::uint32_t>(streams.size()) - kMostStreams;
      streams.resize(kMostStreams);
    }
    for (const TrackId track : streams) {
      SceneLane& lane = begin_lane(SceneLane::Kind::kStream, track);
      lane_of_[raw(track)] = scene_.lanes.size() - 1;
      std::vector<std::int64_t> row_ends(kMostSubRows, INT64_MIN);
      for (const DeviceWork* work : found) {
        if (trace_.slices().track[raw(work->slice)] != track) continue;
        const std::uint32_t row = free_row(row_ends, work->slice);
        row_of_[raw(work->slice)] = row;
        add_bar(lane, work->slice, row, look_of(work->work));
      }
    }
    add_idle(*device);
  }

  void add_idle(const DeviceFacts& device) {
    const auto& parts = device.gaps.parts;
    auto part = std::upper_bound(
        parts.begin(), parts.end(), scene_.window.start_ns,
        [](std::int64_t time, const analysis::IdlePart& each) { return time < each.end_ns; });
    for (; part != parts.end() && part->start_ns < scene_.window.end_ns; ++part) {
      SceneIdle seen{std::max(part->start_ns, scene_.window.start_ns),
                     std::min(part->end_ns, scene_.window.end_ns), part->cause, 1, 0};
      seen.idle_ns = seen.end_ns - seen.start_ns;
      scene_.idle_ns += seen.idle_ns;
      SceneIdle* last = scene_.idle.empty() ? nullptr : &scene_.idle.back();
      const bool both_short = last && seen.idle_ns < fold_ns_ && last->idle_ns < fold_ns_;
      if (!both_short || seen.end_ns - last->start_ns >= fold_ns_) {
        scene_.idle.push_back(seen);
        continue;
      }
      last->idle_ns += seen.idle_ns;
      ++last->folded_count;
    }
  }

  void add_arrow(SliceId launch, SliceId work) {
    const auto lane = lane_of_.find(raw(trace_.slices().track[raw(work)]));
    if (!call_lane_ || lane == lane_of_.end()) return;
    if (scene_.arrows.size() == kMostArrows) {
      ++scene_.hidden_arrow_count;
      return;
    }
    scene_.arrows.push_back({trace_.start_ns(launch), trace_.end_ns(launch), trace_.start_ns(work),
                             row_of_[raw(launch)], row_of_[raw(work)], *call_lane_, lane->second});
  }

  // GPU work: the arrow that ends at it. A call or an operator: those that begin in it.
  void add_arrows(bool is_work) {
    if (is_work) {
      if (inner_ != kNone<SliceId>) add_arrow(inner_, evidence_);
      return;
    }
    if (inner_ == kNone<SliceId> || scene_.is_clip) return;
    const Track& track = trace_.track(inner_);
    for (std::uint32_t i = raw(inner_); i < track.first_slice + track.slice_count; ++i) {
      if (i != raw(inner_) && trace_.slices().start_ns[i] >= trace_.end_ns(inner_)) break;
      for (const SliceId work : facts_.links.launched_by(SliceId{i})) add_arrow(SliceId{i}, work);
    }
  }

  static constexpr std::size_t kNothing = ~std::size_t{0};
  const Facts& facts_;
  const Trace& trace_;
  SliceId evidence_, inner_ = kNone<SliceId>;
  Scene scene_;
  std::int64_t fold_ns_ = 0;
  std::vector<std::size_t> last_in_row_;
  std::optional<std::size_t> call_lane_;
  std::unordered_map<std::uint32_t, std::size_t> lane_of_;   // raw TrackId
  std::unordered_map<std::uint32_t, std::uint32_t> row_of_;  // raw SliceId
};

}  // namespace

Scene make_evidence_scene(const Facts& facts, SliceId slice) {
  return SceneMaker(facts, slice).run();
}

}  // namespace lanescope::view
