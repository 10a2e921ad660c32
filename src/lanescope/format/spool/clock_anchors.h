// The clock anchors of a recording as JSON, so that traces of several processes can be put
// on one clock.
#pragma once
#include <cstdint>
#include <string>

#include "lanescope/format/spool/tick_map.h"

namespace lanescope::format {

inline constexpr std::size_t kMaxExportedAnchors = 64;

// [{"trace_unix_ns": .., "monotonic_ns": .., "realtime_ns": .., "width_ns": ..}, ...] in order of
// time: each is one moment on the trace's clock (base time plus ts), on CLOCK_MONOTONIC and on
// CLOCK_REALTIME, and how long reading the clocks took. A recording has one per second; a long one
// exports kMaxExportedAnchors of them, with the first and the last. Empty: no good anchors.
std::string clock_anchors_json(const TickMap& clock, std::uint64_t ticks_per_second);

}  // namespace lanescope::format
