// All clocks at one moment.
#pragma once
#include <cstdint>

#include "lanescope/codec/spool_layout.h"

namespace lanescope::record {

// A record of kind kAnchor. Takes some hundred nanoseconds.
spool::AnchorRecord read_anchor() noexcept;
// Accurate to about one part in ten thousand; takes a millisecond. Used for the length of a ring,
// and for recordings killed before their second anchor.
std::uint64_t estimate_ticks_per_second() noexcept;

}  // namespace lanescope::record
