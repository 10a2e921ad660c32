#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/simulate/graph_draft.h"

namespace lanescope::simulate {
namespace {

// Work that starts within this time after work of another stream, and later than its own stream and
// launch explain, waited for it.
constexpr std::int64_t kStreamWaitNs = 20'000;

constexpr std::int64_t kUsualGapNs = 1'000;  // without a sample in the trace

struct UsualDelays {
  std::map<std::uint32_t, std::int64_t> launch;      // by name of the call
  std::int64_t gap[2] = {kUsualGapNs, kUsualGapNs};  // after a kernel; into or out of a copy
  std::int64_t launch_of(std::uint32_t name) const {
    const auto found = launch.find(name);
    return found == launch.end() ? 0 : found->second;
  }
};

std::size_t gap_kind(const GpuWork& a, const GpuWork& b) {
  return a.work == analysis::WorkClass::kCopy || b.work == analysis::WorkClass::kCopy ? 1 : 0;
}

// Launch to start where the stream was idle; gaps where the launch was long before.
UsualDelays usual_delays(const GraphDraft& draft) {
  std::map<std::uint32_t, std::vector<std::int64_t>> launches;
  std::vector<std::int64_t> gaps[2];
  for (const GpuWork& work : draft.graph.works) {
    if (work.launch == kNone<SliceId>) continue;
    const std::int64_t start = draft.trace.start_ns(work.slice);
    const std::int64_t launch = draft.trace.start_ns(work.launch);
    const std::int64_t before = work.previous == kNoIndex ? kNoTime : draft.end_ns(work.previous);
    if (launch > start) continue;
    if (before == kNoTime || before < launch)
      launches[draft.launch_name(work)].push_back(start - launch);
    else if (before <= start && draft.trace.end_ns(work.launch) + 10'000 < before)
      gaps[gap_kind(draft.graph.works[work.previous], work)].push_back(start - before);
  }
  UsualDelays usual;
  for (auto& [name, values] : launches) usual.launch[name] = median_or(std::move(values), 0);
  for (std::size_t i = 0; i < 2; ++i) usual.gap[i] = median_or(std::move(gaps[i]), kUsualGapNs);
  return usual;
}

// The end of the work that this one waited for on another stream of its device, if that ended
// while this one was late.
std::uint32_t other_stream(const GraphDraft& draft, std::uint32_t index, std::size_t ended,
                           std::int64_t late) {
  const GpuWork& work = draft.graph.works[index];
  const std::int64_t start = draft.trace.start_ns(work.slice);
  for (std::size_t back = 0; back < 16 && back < ended; ++back) {
    const std::uint32_t each = draft.by_end[ended - 1 - back];
    if (start - draft.end_ns(each) > std::min(late, kStreamWaitNs)) break;
    if (draft.trace.slices().track[raw(draft.graph.works[each].slice)] !=
            draft.trace.slices().track[raw(work.slice)] &&
        draft.graph.works[each].on_main_device == work.on_main_device &&
        draft.position[draft.graph.works[each].end] < draft.position[work.start])
      return draft.graph.works[each].end;
  }
  return kNoIndex;
}

// The latest of launch, stream and another stream explains the start; the rest of it is slack.
void connect_start(GraphDraft& draft, std::uint32_t index, std::uint32_t before, std::size_t ended,
                   const UsualDelays& usual) {
  GpuWork& work = draft.graph.works[index];
  const std::int64_t start = draft.trace.start_ns(work.slice);
  std::uint32_t launch = work.launch == kNone<SliceId>
                             ? kNoIndex
                             : draft.host_point(work.launch, draft.trace.start_ns(work.launch));
  if (launch != kNoIndex && draft.position[launch] >= draft.position[work.start]) launch = kNoIndex;
  // Work that overlaps others of its stream follows the start of the one before it.
  std::uint32_t from = kNoIndex;
  if (before != kNoIndex) {
    from = draft.graph.works[before].end;
    if (draft.position[from] >= draft.position[work.start])
      from = draft.graph.works[work.previous].start;
  }
  const std::int64_t usual_launch =
      launch == kNoIndex ? 0 : usual.launch_of(draft.launch_name(work));
  const std::int64_t usual_gap =
      before == kNoIndex ? 0 : usual.gap[gap_kind(draft.graph.works[before], work)];
  const std::int64_t ready_launch =
      launch == kNoIndex ? kNoTime : draft.time_of(launch) + usual_launch;
  const std::int64_t ready_stream = from == kNoIndex ? kNoTime : draft.time_of(from) + usual_gap;
  const bool by_launch = ready_launch >= ready_stream;
  std::uint32_t other = kNoIndex;
  if (launch != kNoIndex || from != kNoIndex) {
    const std::int64_t late = start - std::max(ready_launch, ready_stream);
    if (late > usual_gap + 500) other = other_stream(draft, index, ended, late);
  }
  const auto weigh = [&](std::uint32_t source, std::int64_t often, bool binds, EdgeKind kind) {
    const std::int64_t whole = start - draft.time_of(source);
    return Edge{.kind = kind,
                .owner = work.slice,
                .weight_ns = binds ? whole : std::min(whole, often),
                .unexplained_ns = binds ? std::max<std::int64_t>(0, whole - often) : 0};
  };
  const bool by_other = other != kNoIndex;
  if (launch != kNoIndex)
    work.launch_edge = draft.add(
        launch, work.start, weigh(launch, usual_launch, by_launch && !by_other, EdgeKind::kLaunch));
  if (from != kNoIndex)
    work.stream_edge = draft.add(
        from, work.start, weigh(from, usual_gap, !by_launch && !by_other, EdgeKind::kStream));
  if (by_other) draft.add(other, work.start, weigh(other, usual_gap, true, EdgeKind::kStreamWait));
  if (launch == kNoIndex && from == kNoIndex) draft.fix(work.start, work.slice);
  // Room for a dependency that a change may need.
  if (work.previous != kNoIndex &&
      draft.trace.kind(draft.graph.works[work.previous].slice) == CategoryKind::kGpuMemcpy)
    work.spare_edge = draft.add(
        0, work.start, {.kind = EdgeKind::kStreamWait, .dropped = true, .owner = work.slice});
}

}  // namespace

void connect_works(GraphDraft& draft) {
  const UsualDelays usual = usual_delays(draft);
  // The work of each stream that ends last, among those that started earlier.
  std::unordered_map<std::uint32_t, std::uint32_t> longest;
  // Work of all streams that has ended, in order of end.
  std::size_t ended = 0;
  for (std::uint32_t i = 0; i < draft.graph.works.size(); ++i) {
    const GpuWork& work = draft.graph.works[i];
    const std::uint32_t track = raw(draft.trace.slices().track[raw(work.slice)]);
    std::uint32_t before = work.previous;
    if (const auto found = longest.find(track); found != longest.end()) before = found->second;
    while (ended < draft.by_end.size() && draft.end_ns(draft.by_end[ended]) <= draft.start_ns(i))
      ++ended;
    connect_start(draft, i, before, ended, usual);
    if (const std::uint32_t edge = draft.add(work.start, work.end,
                                             {.kind = EdgeKind::kWork,
                                              .owner = work.slice,
                                              .weight_ns = draft.trace.dur_ns(work.slice)});
        edge != kNoIndex)
      draft.graph.works[i].work_edge = edge;
    if (before == kNoIndex || draft.end_ns(i) >= draft.end_ns(before)) longest[track] = i;
  }
}

}  // namespace lanescope::simulate
