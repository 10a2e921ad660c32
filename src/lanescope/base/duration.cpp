#include "lanescope/base/duration.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace lanescope {

std::optional<std::int64_t> parse_duration_ns(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + digits, number, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + digits || end[-1] == '.') return std::nullopt;
  const std::string_view unit = text.substr(digits);
  const double seconds = unit == "ms"  ? number * 1e-3
                         : unit == "s" ? number
                         : unit == "m" ? number * 60
                                       : -1;
  if (!(seconds >= 1e-3 && seconds <= 1e9)) return std::nullopt;
  return std::llround(seconds * 1e9);
}

}  // namespace lanescope
