// Numbers and times as people type them: "2.5", "10s", "500ms", "2m".
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace lanescope {

// A plain decimal number in front, without blanks or signs; the rest stays in `text`. Nothing:
// there is none, and `text` stays. Any thread; O(length).
std::optional<double> take_decimal(std::string_view* text);

// A decimal number of ms, s or m, without blanks or signs; 1 ms to 1e9 s. In nanoseconds, rounded.
// Nothing: it is no such text. Any thread; O(length).
std::optional<std::int64_t> parse_duration_ns(std::string_view text);

}  // namespace lanescope
