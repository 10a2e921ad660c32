// A 128-bit integer for products of times. Times in a damaged file reach 73 years, and 20 times 73
// years in nanoseconds do not fit 64 bits.
#pragma once
#include <cstdint>

namespace lanescope {

__extension__ using Wide = __int128;

constexpr Wide wide(std::int64_t value) { return value; }

}  // namespace lanescope
