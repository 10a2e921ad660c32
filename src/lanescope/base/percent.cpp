#include "lanescope/base/percent.h"

#include "lanescope/base/duration.h"

namespace lanescope {

std::optional<double> parse_percent(std::string_view text) {
  const std::optional<double> number = take_decimal(&text);
  if (!number || (text != "%" && text != " %")) return std::nullopt;
  if (!(*number >= 0.1 && *number <= 50)) return std::nullopt;
  return *number / 100;
}

}  // namespace lanescope
