// Decimal text to integers, exactly: a double cannot hold nanoseconds since 1970.
#pragma once
#include <cstdint>
#include <string_view>

namespace lanescope::codec {

enum class DecimalStatus : std::uint8_t { kOk, kNotANumber, kOutOfRange };

struct Decimal {
  DecimalStatus status = DecimalStatus::kNotANumber;
  std::int64_t value = 0;  // text times 10^scale, digits behind that cut off (towards zero)
  bool cut = false;        // a digit other than 0 was cut off
};

// [-+]digits[.digits][e[-+]digits], nothing before or behind. parse_decimal("4365001498111.3805",
// 3) is {kOk, 4365001498111380, cut}. Cost: one pass, no allocation.
Decimal parse_decimal(std::string_view text, int scale);

// A number as JSON allows it: -0.5e+3, but not +1, 01, .5 or 1.
bool is_json_number(std::string_view text);

}  // namespace lanescope::codec
