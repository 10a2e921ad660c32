// The clock of a GPU's counters, turned into times of the trace.
//
// Samples carry CUPTI's time, which the sampler reads now and then together with the recorder's
// clock (anchors). In each second the anchor with the smallest distance between the two clocks
// counts, because an interruption makes it larger. Where kernels were recorded, "SM active" rises
// when they begin: the median distance between the two corrects the rest. Cost: one pass each.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lanescope/codec/counter_file.h"

namespace lanescope::format {

class CounterClock {
 public:
  CounterClock() = default;
  // `time_ns`: the trace's time of a tick.
  CounterClock(std::span<const counters::Anchor> anchors,
               const std::function<std::optional<std::int64_t>(std::uint64_t)>& time_ns);

  bool is_known() const { return !offsets_.empty(); }
  // Nanoseconds since the trace's base. Needs is_known().
  std::int64_t time_ns(std::uint64_t device_ns) const;
  void shift(std::int64_t by_ns) { shift_ns_ += by_ns; }

 private:
  struct Offset {
    std::uint64_t device_ns;
    std::int64_t offset_ns;
  };
  std::vector<Offset> offsets_;  // by device_ns; straight lines in between
  std::int64_t shift_ns_ = 0;
};

struct BusySpan {
  std::int64_t start_ns, end_ns;
};
struct EdgeShift {
  std::int64_t shift_ns = 0;  // to add to times of counters
  std::int64_t error_ns = 0;  // half of the edges are at most so far from the shift
  std::uint32_t edges = 0;
};

inline constexpr std::uint32_t kFewestEdges = 5;

// `busy`: when the device ran anything, disjoint, by time. `start_ns`, `length_ns`, `active`:
// samples of "SM active" in the trace's time. Uses spans of at least 4 samples with at least 4
// idle ones before them, whose rise is within `reach_ns`. Nothing: fewer than kFewestEdges.
std::optional<EdgeShift> measure_edges(std::span<const BusySpan> busy,
                                       std::span<const std::int64_t> start_ns,
                                       std::span<const std::uint32_t> length_ns,
                                       std::span<const float> active, std::int64_t interval_ns);

}  // namespace lanescope::format
