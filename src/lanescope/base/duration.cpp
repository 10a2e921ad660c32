#include "lanescope/base/duration.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace lanescope {

std::optional<double> take_decimal(std::string_view* text) {
  const std::size_t digits = std::min(text->find_first_not_of("0123456789."), text->size());
  double value = 0;
  const auto [end, error] =
      std::from_chars(text->data(), text->data() + digits, value, std::chars_format::fixed);
  if (error != std::errc() || end != text->data() + digits || end[-1] == '.') return std::nullopt;
  text->remove_prefix(digits);
  return value;
}

std::optional<std::int64_t> parse_duration_ns(std::string_view text) {
  const std::optional<double> number = take_decimal(&text);
  const double seconds = !number        ? -1
                         : text == "ms" ? *number * 1e-3
                         : text == "s"  ? *number
                         : text == "m"  ? *number * 60
                                        : -1;
  if (!(seconds >= 1e-3 && seconds <= 1e9)) return std::nullopt;
  return std::llround(seconds * 1e9);
}

}  // namespace lanescope
