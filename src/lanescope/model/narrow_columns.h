// Columns of numbers that are nearly always small. Half the bytes hold them, and a second list what
// does not fit. They are read by row, as other columns are. `List`: GrowingColumn or Column.
#pragma once
#include <cstddef>
#include <cstdint>

#include "lanescope/base/ids.h"

namespace lanescope {

// Durations of 0 and more. Four bytes hold up to 2.1 s. Reading a longer one is a second load.
template <template <typename> class List>
struct DurationColumn {
  static constexpr std::uint32_t kLong = std::uint32_t{1} << 31;

  List<std::uint32_t> short_ns;  // from kLong on: kLong plus a row of long_ns
  List<std::int64_t> long_ns;    // in no order: it stays as it is when rows are sorted

  std::size_t size() const { return short_ns.size(); }
  std::int64_t operator[](std::size_t row) const {
    const std::uint32_t ns = short_ns[row];
    return ns < kLong ? ns : long_ns[ns - kLong];
  }
  // While it grows.
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
  // While it grows.
  void push_back(TrackId track) {
    const auto upper = static_cast<std::uint16_t>(raw(track) >> 16);
    if (upper != 0 || !high.empty()) {
      high.resize(low.size());  // with the first one, those before it
      high.push_back(upper);
    }
    low.push_back(static_cast<std::uint16_t>(raw(track)));
  }
};

}  // namespace lanescope
