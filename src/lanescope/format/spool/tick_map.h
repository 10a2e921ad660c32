// Converts the recorder's ticks to nanoseconds.
//
// Problem: the rate of the counter is known only roughly, and drifts against the monotonic clock.
// Idea: the recorder sometimes reads both clocks at once (anchors). Between two anchors, time is a
// straight line, so every anchor is exact and time never runs backwards. Before the first anchor
// and after the last one, the nearest line goes on. Error: at most half the width of the anchors'
// reading (tens of ns), plus the drift of the rate in between; while a window is open, anchors are
// at most a second apart.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace lanescope::format {

struct TickAnchor {
  std::uint64_t ticks = 0;
  std::int64_t monotonic_ns = 0;
  std::int64_t realtime_ns = 0;
  std::uint64_t width_ticks = 0;  // how long the reading took, which limits the accuracy
};

class TickMap {
 public:
  // Uses `ticks_per_second` if fewer than two anchors are good; 0: one tick is one nanosecond.
  // Leaves out anchors that would make time run backwards.
  TickMap(std::vector<TickAnchor> anchors, std::uint64_t ticks_per_second);
  // Nanoseconds since 1970: the monotonic clock, shifted by the realtime clock at the first anchor.
  // Nothing: more than about 100 years away, which is damage.
  std::optional<std::int64_t> unix_ns(std::uint64_t ticks) const;
  // The anchors in use, by ticks.
  const std::vector<TickAnchor>& anchors() const { return anchors_; }
  // The reverse, exact to the tick; 0: none.
  std::uint64_t ticks_at(std::int64_t unix_ns) const;

 private:
  struct Segment {
    std::uint64_t ticks;
    std::int64_t ns;
    double ns_per_tick;
  };
  std::vector<TickAnchor> anchors_;
  std::vector<Segment> segments_;  // by ticks; each holds up to the next
  mutable std::size_t last_ = 0;   // one thread
};

}  // namespace lanescope::format
