#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lanescope/model/names_where.h"
#include "lanescope/simulate/graph_draft.h"

namespace lanescope::simulate {
namespace {

bool is_name_of_loader(std::string_view name) {
  return name.find("DataLoader") != std::string_view::npos &&
         name.find("next") != std::string_view::npos;
}
using LoaderNames = NamesWhere<bool (*)(std::string_view)>;

Moment kind_of_event(const Trace& trace, SliceId slice) {
  if (slice == kNone<SliceId>) return Moment::kOther;
  const CategoryKind kind = trace.kind(slice);
  if (kind == CategoryKind::kCpuOp) return Moment::kOperator;
  if (kind == CategoryKind::kPythonFunction) return Moment::kPython;
  return is_api_call(kind) ? Moment::kCall : Moment::kOther;
}

// What begins or ends at point `i`.
Moment moment_at(const GraphDraft& draft, const DraftThread& thread, std::uint32_t i) {
  const SliceId slice = thread.points[i].slice;
  if (slice != kNone<SliceId> && draft.trace.start_ns(slice) == thread.points[i].time_ns)
    return kind_of_event(draft.trace, slice);
  return i == 0 ? Moment::kOther : kind_of_event(draft.trace, thread.points[i - 1].slice);
}

// One segment of a thread's own time.
std::uint32_t connect_segment(GraphDraft& draft, const DraftThread& thread, std::uint32_t i,
                              EdgeKind kind, std::int64_t own_ns) {
  const std::uint32_t to = thread.first + i + 1;
  const auto found = draft.own_ns.find(to);
  const bool waits = found != draft.own_ns.end();
  // The call's own time, less what of it lies before this segment.
  if (waits) own_ns = std::min(own_ns, found->second);
  const std::uint32_t edge = draft.add(thread.first + i, to,
                                       {.kind = kind,
                                        .after = moment_at(draft, thread, i),
                                        .owner = thread.points[i].slice,
                                        .weight_ns = own_ns});
  if (waits) draft.own_edge[to] = edge;
  return edge;
}

// Into point `i`, which begins work after a time without events: if the main thread did something
// since `idle_from`, it is what woke this one.
bool hand_over(GraphDraft& draft, const DraftThread& thread, std::uint32_t i,
               const DraftThread* main, std::int64_t idle_from) {
  if (!main || i + 1 >= thread.points.size() ||
      draft.trace.track(thread.track).process != draft.trace.track(main->track).process)
    return false;
  const std::int64_t time = thread.points[i].time_ns;
  const std::uint32_t last = main->last_at(time);
  if (last == kNoIndex || main->points[last].time_ns <= idle_from) return false;
  return draft.add(main->first + last, thread.first + i,
                   {.kind = EdgeKind::kHandOver,
                    .after = moment_at(draft, *main, last),
                    .owner = main->points[last].slice,
                    .weight_ns = time - main->points[last].time_ns}) != kNoIndex;
}

void connect_worker(GraphDraft& draft, const DraftThread& thread, const DraftThread* main) {
  if (!hand_over(draft, thread, 0, main, kNoTime)) draft.fix(thread.first, thread.points[0].slice);
  for (std::uint32_t i = 0; i + 1 < thread.points.size(); ++i) {
    const std::int64_t length = thread.points[i + 1].time_ns - thread.points[i].time_ns;
    const bool handed = thread.points[i].slice == kNone<SliceId> &&
                        hand_over(draft, thread, i + 1, main, thread.points[i].time_ns);
    connect_segment(draft, thread, i, handed ? EdgeKind::kOtherHost : EdgeKind::kHost,
                    handed ? 0 : length);
  }
}

// When the thread asked its DataLoader for batches: in order, disjoint.
std::vector<analysis::Window> loader_ranges(const GraphDraft& draft, TrackId thread,
                                            LoaderNames& is_loader_event) {
  std::vector<analysis::Window> ranges;
  const Track& track = draft.trace.track(thread);
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    if (!is_loader_event(SliceId{i})) continue;
    const std::int64_t start_ns = draft.trace.start_ns(SliceId{i}),
                       end_ns = draft.trace.end_ns(SliceId{i});
    if (ranges.empty() || start_ns >= ranges.back().end_ns)
      ranges.push_back({start_ns, end_ns});
    else
      ranges.back().end_ns = std::max(ranges.back().end_ns, end_ns);
  }
  return ranges;
}

// The main thread has no event in segment `i`, and another thread works in most of that time: the
// main thread waited until that one was done.
bool hand_back(GraphDraft& draft, const DraftThread& main, std::uint32_t i) {
  const std::int64_t from = main.points[i].time_ns, to = main.points[i + 1].time_ns;
  const DraftThread* last_thread = nullptr;
  std::uint32_t last = 0;
  for (const DraftThread& thread : draft.threads) {
    if (&thread == &main ||
        draft.trace.track(thread.track).process != draft.trace.track(main.track).process)
      continue;
    const std::uint32_t end = thread.last_at(to);
    if (end == kNoIndex || thread.points[end].time_ns <= from ||
        thread.points[end].slice != kNone<SliceId>)
      continue;
    const std::uint32_t before = thread.last_at(from);
    if (before != kNoIndex && thread.points[before].slice != kNone<SliceId>) continue;
    const std::int64_t begin = thread.points[before == kNoIndex ? 0 : before + 1].time_ns;
    if ((thread.points[end].time_ns - begin) * 2 < to - from) continue;
    if (last_thread && last_thread->points[last].time_ns >= thread.points[end].time_ns) continue;
    last_thread = &thread;
    last = end;
  }
  return last_thread &&
         draft.add(last_thread->first + last, main.first + i + 1,
                   {.kind = EdgeKind::kHandOver,
                    .after = moment_at(draft, *last_thread, last),
                    .owner = main.points[i].slice,
                    .weight_ns = to - last_thread->points[last].time_ns}) != kNoIndex;
}

void connect_main(GraphDraft& draft, const DraftThread& main) {
  draft.fix(main.first, main.points[0].slice);
  LoaderNames is_loader_event(draft.trace, is_name_of_loader);
  const std::vector<analysis::Window> loading = loader_ranges(draft, main.track, is_loader_event);
  std::size_t next_range = 0;
  for (std::uint32_t i = 0; i + 1 < main.points.size(); ++i) {
    const std::int64_t time_ns = main.points[i].time_ns;
    while (next_range < loading.size() && loading[next_range].end_ns <= time_ns) ++next_range;
    const bool in_loader = next_range < loading.size() && loading[next_range].start_ns <= time_ns;
    const SliceId slice = main.points[i].slice;
    const std::int64_t length = main.points[i + 1].time_ns - main.points[i].time_ns;
    const bool is_own = slice != kNone<SliceId> &&
                        (draft.is_call(slice) || draft.trace.kind(slice) == CategoryKind::kCpuOp);
    const bool handed = !is_own && length > 20'000 && hand_back(draft, main, i);
    const bool is_loader = slice != kNone<SliceId> && is_loader_event(slice);
    const EdgeKind kind = handed      ? EdgeKind::kOtherHost
                          : is_loader ? EdgeKind::kData
                                      : EdgeKind::kHost;
    const std::uint32_t edge = connect_segment(draft, main, i, kind, handed ? 0 : length);
    // Operators that make a batch in this process: what makes the loader faster makes them faster.
    if (edge != kNoIndex && kind == EdgeKind::kHost && in_loader &&
        !(slice != kNone<SliceId> && draft.is_call(slice)))
      draft.pending[edge].in_loader = true;
  }
}

}  // namespace

void connect_threads(GraphDraft& draft) {
  const DraftThread* main = draft.main_thread();
  for (const DraftThread& thread : draft.threads)
    if (&thread != main) connect_worker(draft, thread, main);
  if (main) connect_main(draft, *main);
}

}  // namespace lanescope::simulate
