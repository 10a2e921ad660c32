// Columns of numbers that are nearly always small. The first list stores a number in half its bytes,
// and a second list stores what does not fit. Code reads them by row, like other columns. `List`:
// GrowingColumn or Column.
#pragma once
#include <cstddef>
#include <cstdint>

#include "lanescope/base/ids.h"

namespace lanescope {

// Durations of 0 and more. Four bytes hold up to 2.1 s. Reading a longer one costs a second load.
template <template <typename> class List>
struct DurationColumn {
  static constexpr std::uint32_t kLong = std::uint32_t{1} << 31;

  List<std::uint32_t> short_ns;  // kLong or more means: kLong plus the row in long_ns
  List<std::int64_t> long_ns;    // in no order: sorting the rows does not move these

  std::size_t size() const { return short_ns.size(); }
  std::int64_t operator[](std::size_t row) const {
    const std::uint32_t ns = short_ns[row];
    return ns < kLong ? ns : long_ns[ns - kLong];
  }
  // Only for a GrowingColumn.
  void push_back(std::int64_t ns) {
    if (ns < kLong) return short_ns.push_back(static_cast<std::uint32_t>(ns));
    short_ns.push_back(kLong + static_cast<std::uint32_t>(long_ns.size()));
    long_ns.push_back(ns);
  }
};

// Tracks by row. Two bytes hold them unless a trace has more than 65,536 tracks.
template <template <typename> class List>
struct TrackColumn {
  List<std::uint16_t> low;   // the lower half of the number
  List<std::uint16_t> high;  // the upper half; empty: always 0

  std::size_t size() const { return low.size(); }
  TrackId operator[](std::size_t row) const {
    const std::uint32_t upper = high.empty() ? 0 : high[row];
    return TrackId{upper << 16 | low[row]};
  }
  // Only for a GrowingColumn.
  void push_back(TrackId track) {
    const auto upper = static_cast<std::uint16_t>(raw(track) >> 16);
    if (upper != 0 || !high.empty()) {
      high.resize(low.size());  // at the first such track, all earlier rows get 0
      high.push_back(upper);
    }
    low.push_back(static_cast<std::uint16_t>(raw(track)));
  }
};

}  // namespace lanescope
