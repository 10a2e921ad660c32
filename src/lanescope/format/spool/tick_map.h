// From the recorder's tick counter to nanoseconds.
//
// Problem: a counter ticks at a rate that is known only roughly, and drifts against the monotonic
// clock. Idea: the recorder reads both clocks at once now and then (anchors); between two
// neighbours time is a straight line, so every anchor is met exactly and time never runs backwards.
// Outside, the line through the outermost anchors goes on. Error: at most that of the two anchors,
// which is half the width of their reading (tens of ns), plus what the rate moved in between; both
// neighbours are at most a second apart while a window is open.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace lanescope::format {

struct TickAnchor {
  std::uint64_t ticks = 0;
  std::int64_t monotonic_ns = 0;
  std::int64_t realtime_ns = 0;
  std::uint64_t width_ticks = 0;  // how long the reading took: neither clock is known better
};

class TickMap {
 public:
  // `ticks_per_second` serves when fewer than two anchors are good; 0: one tick is one nanosecond.
  // Anchors that would turn time around are left out.
  TickMap(std::vector<TickAnchor> anchors, std::uint64_t ticks_per_second);
  // Nanoseconds since 1970: the monotonic clock, moved by what the realtime clock said at the first
  // anchor. Nothing for ticks further than about 100 years away, which only damage can bring.
  std::optional<std::int64_t> unix_ns(std::uint64_t ticks) const;
  // Those that are not left out, by ticks.
  const std::vector<TickAnchor>& anchors() const { return anchors_; }
  // The other way, to the tick; 0 when there is none.
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
