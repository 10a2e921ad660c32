// All clocks at one moment.
#pragma once
#include <cstdint>

#include "lanescope/codec/spool_layout.h"

namespace lanescope::record {

// As a record of kind kAnchor. Some hundred nanoseconds.
spool::Record read_anchor() noexcept;
// Good to about one part in ten thousand; takes a millisecond. Only a recording that was killed
// before its second anchor, and the length of a ring, need it.
std::uint64_t estimate_ticks_per_second() noexcept;

}  // namespace lanescope::record
