// Checks whether all times of a trace can belong to one recording.
#pragma once
#include <cstdint>
#include <optional>

#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// 104 days. Sums and small multiples of times within such a span fit in 64 bits.
inline constexpr std::int64_t kLongestSpanNs = std::int64_t{1} << 53;

struct FarTimes {
  SliceId first{}, last{};    // starts first; ends last
  std::uint64_t span_ns = 0;  // from that start to that end
};

// The two slices furthest apart, if they span more than kLongestSpanNs. Then one of the times is
// wrong, and it is unknown which. O(slices). Any thread.
std::optional<FarTimes> find_far_times(const Trace& trace);

}  // namespace lanescope::analysis
