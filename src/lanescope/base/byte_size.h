// Sizes as people type them: "500M", "2G", "4GiB", "100000000".
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace lanescope {

// A decimal number with a unit. K, M, G and T (or KB, MB, ...) are powers of 1000, as for disks;
// KiB, MiB, GiB and TiB are powers of 1024. No unit: whole bytes. No blanks, no signs; rounded to a
// byte, below 2^63. Anything else: nothing. Any thread; O(length).
std::optional<std::uint64_t> parse_byte_size(std::string_view text);

}  // namespace lanescope
