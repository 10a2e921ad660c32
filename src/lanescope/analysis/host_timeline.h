// What each CPU thread was doing at any moment: its innermost slice.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lanescope/model/trace.h"

namespace lanescope::analysis {

struct HostSegment {
  std::int64_t start_ns = 0;       // until the next segment of the thread
  SliceId slice = kNone<SliceId>;  // kNone: no event was open
};

// Operators, annotations, API calls, Python frames and events of unknown category. About 16 bytes
// per segment, at most two segments per slice. O(n). Any thread.
class HostTimeline {
 public:
  explicit HostTimeline(const Trace& trace);

  // Calls each(slice, from, to) for the segments that fill [start_ns, end_ns) on that thread
  // completely, in order.
  template <typename Each>
  void visit(TrackId track, std::int64_t start_ns, std::int64_t end_ns, Each each) const {
    const std::span<const HostSegment> all = segments(track);
    visit_from(last_at_or_before(all, start_ns), all, start_ns, end_ns, each);
  }

 private:
  friend class HostReader;
  template <typename Each>
  static void visit_from(std::size_t i, std::span<const HostSegment> all, std::int64_t start_ns,
                         std::int64_t end_ns, Each& each) {
    while (start_ns < end_ns) {
      const bool before_all = i == all.size();
      const std::size_t next = before_all ? 0 : i + 1;
      const std::int64_t until =
          next < all.size() && all[next].start_ns < end_ns ? all[next].start_ns : end_ns;
      if (until > start_ns) each(before_all ? kNone<SliceId> : all[i].slice, start_ns, until);
      if (next >= all.size()) break;
      start_ns = until;
      i = next;
    }
  }

  std::span<const HostSegment> segments(TrackId track) const {
    return std::span(segments_).subspan(first_[raw(track)],
                                        first_[raw(track) + 1] - first_[raw(track)]);
  }
  // The last segment that begins at or before the time; all.size(): none does.
  static std::size_t last_at_or_before(std::span<const HostSegment> all, std::int64_t time_ns);
  // The same, but quick if it is soon after `from`, which begins at or before the time.
  static std::size_t last_soon_after(std::size_t from, std::span<const HostSegment> all,
                                     std::int64_t time_ns);

  std::vector<HostSegment> segments_;
  std::vector<std::size_t> first_;  // one per track, and the end
};

// Visits many stretches of time. Those in order, on one thread, are found without a search of the whole thread. Borrows the timeline.
class HostReader {
 public:
  explicit HostReader(const HostTimeline& host) : host_(host) {}
  // As HostTimeline::visit().
  template <typename Each>
  void visit(TrackId track, std::int64_t start_ns, std::int64_t end_ns, Each each) {
    const std::span<const HostSegment> all = host_.segments(track);
    const bool is_later = track == track_ && at_ < all.size() && all[at_].start_ns <= start_ns;
    at_ = is_later ? HostTimeline::last_soon_after(at_, all, start_ns)
                   : HostTimeline::last_at_or_before(all, start_ns);
    track_ = track;
    HostTimeline::visit_from(at_, all, start_ns, end_ns, each);
  }

 private:
  const HostTimeline& host_;
  TrackId track_ = kNone<TrackId>;
  std::size_t at_ = 0;  // the segment in which the last stretch began
};

}  // namespace lanescope::analysis
