#include "lanescope/base/byte_size.h"

#include <charconv>
#include <cmath>

#include "lanescope/base/duration.h"

namespace lanescope {

std::optional<std::uint64_t> parse_byte_size(std::string_view text) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 63;
  std::uint64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error == std::errc() && end == text.data() + text.size())
    return whole < kMost ? std::optional(whole) : std::nullopt;
  const std::optional<double> number = take_decimal(&text);
  if (!number || text.empty()) return std::nullopt;
  const std::size_t power = std::string_view("KMGT").find(text.front());
  text.remove_prefix(1);
  if (power == std::string_view::npos || (!text.empty() && text != "B" && text != "iB"))
    return std::nullopt;
  const double bytes = *number * std::pow(text == "iB" ? 1024.0 : 1000.0, power + 1);
  if (!(bytes < static_cast<double>(kMost))) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(bytes));
}

}  // namespace lanescope
