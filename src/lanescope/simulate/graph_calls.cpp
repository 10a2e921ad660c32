#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/analysis/gaps.h"
#include "lanescope/simulate/graph_draft.h"

namespace lanescope::simulate {
namespace {

// CUDA keeps about this many launches of a stream that have not started.
constexpr std::size_t kUsualQueue = 1024;

// A launch that takes longer may have waited for room in the queue.
constexpr std::int64_t kLongLaunchNs = 20'000;

using UsualCalls = std::map<std::uint32_t, std::int64_t>;  // length by name of the call

// The stream that a record of the wait (category cuda_sync) lies on.
std::optional<TrackId> stream_of_wait(const GraphDraft& draft, SliceId call) {
  for (const SliceId each : draft.in.links.launched_by(call))
    if (draft.trace.kind(each) == CategoryKind::kCudaSync &&
        draft.trace.track(each).kind == TrackKind::kStream &&
        draft.trace.track(each).stream.value_or(-1) >= 0)
      return draft.trace.slices().track[raw(each)];
  return std::nullopt;
}

// The work that ended last while the call was open. For copies their own; of others those that
// were launched before the call.
std::uint32_t waited_for(const GraphDraft& draft, SliceId call, bool& inferred) {
  const std::int64_t from = draft.trace.start_ns(call), to = draft.trace.end_ns(call);
  if (draft.trace.api_call(call).does(api_effect::kCopies)) {
    std::uint32_t last = kNoIndex;
    for (const SliceId each : draft.in.links.launched_by(call)) {
      const std::uint32_t found = draft.work_of[raw(each)];
      if (found != kNoIndex && draft.trace.end_ns(each) <= to && draft.trace.end_ns(each) > from)
        last = found;
    }
    return last;
  }
  const std::optional<TrackId> stream = stream_of_wait(draft, call);
  inferred = !stream && !draft.trace.api_call(call).does(api_effect::kWaitsForDevice);
  auto after = std::upper_bound(
      draft.by_end.begin(), draft.by_end.end(), to,
      [&](std::int64_t time, std::uint32_t each) { return time < draft.end_ns(each); });
  for (int tries = 0; after != draft.by_end.begin() && tries < 64; ++tries) {
    const std::uint32_t each = *--after;
    if (draft.end_ns(each) <= from) break;
    const GpuWork& work = draft.graph.works[each];
    if (stream && draft.trace.slices().track[raw(work.slice)] != *stream) continue;
    if (work.launch != kNone<SliceId> && draft.trace.start_ns(work.launch) >= from) continue;
    return each;
  }
  return kNoIndex;
}

void connect_wait(GraphDraft& draft, SliceId call) {
  const std::uint32_t to = draft.host_point(call, draft.trace.end_ns(call));
  bool inferred = false;
  const std::uint32_t work = waited_for(draft, call, inferred);
  if (to == kNoIndex || work == kNoIndex) return;
  const std::int64_t tail = draft.trace.end_ns(call) - draft.end_ns(work);
  const std::uint32_t edge =
      draft.add(draft.graph.works[work].end, to,
                {.kind = EdgeKind::kHostWait, .owner = call, .weight_ns = tail});
  if (edge == kNoIndex) return;
  draft.own_ns[to] = std::min(tail, draft.trace.dur_ns(call));
  draft.graph.waits.push_back({call, work, edge, to, inferred});
}

void connect_queue(GraphDraft& draft, const UsualCalls& usual, std::uint32_t first,
                   std::uint32_t last) {
  const SliceId call = draft.graph.works[last].launch;
  const std::uint32_t to = draft.host_point(call, draft.trace.end_ns(call));
  const std::int64_t left = draft.trace.end_ns(call) - draft.start_ns(first);
  const bool waited = draft.trace.dur_ns(call) > kLongLaunchNs &&
                      draft.start_ns(first) > draft.trace.start_ns(call);
  const std::uint32_t edge =
      draft.add(draft.graph.works[first].start, to,
                {.kind = EdgeKind::kQueue, .owner = call, .weight_ns = waited ? left : 0});
  if (edge != kNoIndex && waited)
    draft.own_ns[to] =
        std::min(draft.trace.dur_ns(call), usual.at(draft.launch_name(draft.graph.works[last])));
}

// A launch call returns only when fewer than a certain number of launches are in the queue.
void connect_queues(GraphDraft& draft, const UsualCalls& usual) {
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> streams;  // works by track
  for (std::uint32_t i = 0; i < draft.graph.works.size(); ++i)
    if (draft.graph.works[i].launch != kNone<SliceId> &&
        draft.in.links.launched_by(draft.graph.works[i].launch).size() == 1)
      streams[raw(draft.trace.slices().track[raw(draft.graph.works[i].slice)])].push_back(i);
  for (const auto& [track, works] : streams) {
    std::size_t deepest = 0, started = 0;
    for (std::size_t i = 0; i < works.size(); ++i) {
      const std::int64_t called = draft.trace.end_ns(draft.graph.works[works[i]].launch);
      while (started < works.size() && draft.start_ns(works[started]) <= called) ++started;
      if (i + 1 > started) deepest = std::max(deepest, i + 1 - started);
    }
    const std::size_t room = deepest >= kUsualQueue * 7 / 8 ? deepest : kUsualQueue;
    for (std::size_t i = room; i < works.size(); ++i)
      connect_queue(draft, usual, works[i - room], works[i]);
  }
}

}  // namespace

void connect_calls(GraphDraft& draft) {
  std::map<std::uint32_t, std::vector<std::int64_t>> lengths;  // of launch calls, by name
  for (const GpuWork& work : draft.graph.works)
    if (work.launch != kNone<SliceId>)
      lengths[draft.launch_name(work)].push_back(draft.trace.dur_ns(work.launch));
  UsualCalls usual;
  for (auto& [name, values] : lengths) usual[name] = median_or(std::move(values), 0);
  for (const DraftThread& thread : draft.threads) {
    const Track& track = draft.trace.track(thread.track);
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
      if (draft.is_call(SliceId{i}) &&
          analysis::is_blocking_call(draft.trace, draft.in.links, SliceId{i}))
        connect_wait(draft, SliceId{i});
  }
  connect_queues(draft, usual);
}

}  // namespace lanescope::simulate
