// Sizes as people type them: "500M", "2G", "4GiB", "100000000".
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace lanescope {

// A decimal number and K, M, G or T: thousands, as with disks, also written KB and so on; KiB, MiB,
// GiB and TiB count by 1024. Without a unit: bytes, a whole number. No blanks, no signs; rounded to
// a byte, below 2^63. Nothing: it is no such text. Any thread; O(length).
std::optional<std::uint64_t> parse_byte_size(std::string_view text);

}  // namespace lanescope
