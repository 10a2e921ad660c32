// Example: A [0, 100), B [10, 50) inside it -> [0: A] [10: B] [50: A] [100: none].
#include "lanescope/analysis/host_timeline.h"

#include <algorithm>

namespace lanescope::analysis {
namespace {

bool takes_part(CategoryKind kind) {
  return is_front_end(kind) || is_api_call(kind) || kind == CategoryKind::kPythonFunction ||
         kind == CategoryKind::kOther || kind == CategoryKind::kNone;
}

}  // namespace

HostTimeline::HostTimeline(const Trace& trace) {
  std::vector<SliceId> open;
  std::size_t slices = 0;
  for (const Track& track : trace.tracks())
    if (track.kind == TrackKind::kThread) slices += track.slice_count;
  segments_.reserve(slices * 2);  // at most; pages that stay unused take no memory
  for (const Track& track : trace.tracks()) {
    first_.push_back(segments_.size());
    if (track.kind != TrackKind::kThread) continue;
    open.clear();
    const auto put = [this](std::int64_t time_ns, SliceId slice) {
      if (segments_.size() > first_.back() && segments_.back().start_ns == time_ns)
        segments_.back().slice = slice;
      else
        segments_.push_back({time_ns, slice});
    };
    const auto close_until = [&](std::int64_t time_ns) {
      while (!open.empty() && trace.end_ns(open.back()) <= time_ns) {
        const std::int64_t end = trace.end_ns(open.back());
        open.pop_back();
        put(end, open.empty() ? kNone<SliceId> : open.back());
      }
    };
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId id{i};
      if (!takes_part(trace.kind(id)) || trace.dur_ns(id) == 0) continue;
      close_until(trace.start_ns(id));
      // A slice that overlaps the new one only partly ends here, as in SliceNesting.
      while (!open.empty() && trace.end_ns(open.back()) < trace.end_ns(id)) open.pop_back();
      open.push_back(id);
      put(trace.start_ns(id), id);
    }
    while (!open.empty()) close_until(trace.end_ns(open.back()));
  }
  first_.push_back(segments_.size());
}

std::size_t HostTimeline::last_at_or_before(std::span<const HostSegment> all,
                                            std::int64_t time_ns) {
  const auto after = std::upper_bound(
      all.begin(), all.end(), time_ns,
      [](std::int64_t time, const HostSegment& segment) { return time < segment.start_ns; });
  return after == all.begin() ? all.size() : static_cast<std::size_t>(after - all.begin()) - 1;
}

std::size_t HostTimeline::last_soon_after(std::size_t from, std::span<const HostSegment> all,
                                          std::int64_t time_ns) {
  std::size_t step = 1;
  while (from + step < all.size() && all[from + step].start_ns <= time_ns) {
    from += step;
    step *= 2;
  }
  return from + last_at_or_before(all.subspan(from, std::min(step, all.size() - from)), time_ns);
}

}  // namespace lanescope::analysis
