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
    std::size_t i = last_at_or_before(all, start_ns);
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

 private:
  std::span<const HostSegment> segments(TrackId track) const {
    return std::span(segments_).subspan(first_[raw(track)],
                                        first_[raw(track) + 1] - first_[raw(track)]);
  }
  // The last segment that begins at or before the time; all.size(): none does.
  static std::size_t last_at_or_before(std::span<const HostSegment> all, std::int64_t time_ns);

  std::vector<HostSegment> segments_;
  std::vector<std::size_t> first_;  // one per track, and the end
};

}  // namespace lanescope::analysis
