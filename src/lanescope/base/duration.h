// Numbers and times as people type them: "2.5", "10s", "500ms", "2m".
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace lanescope {

// Takes a plain decimal number (no blanks, no signs) from the front of `text`. Nothing: `text` does
// not start with one, and stays as it is. Any thread; O(length).
std::optional<double> take_decimal(std::string_view* text);

// A decimal number of ms, s or m (no blanks, no signs), from 1 ms to 1e9 s, in rounded nanoseconds.
// Anything else: nothing. Any thread; O(length).
std::optional<std::int64_t> parse_duration_ns(std::string_view text);

}  // namespace lanescope
