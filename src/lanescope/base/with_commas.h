// Large numbers for readers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace lanescope {

// 1234567 -> "1,234,567".
inline std::string with_commas(std::uint64_t number) {
  constexpr std::size_t kGroup = 3;
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > kGroup; at -= kGroup)
    digits.insert(at - kGroup, 1, ',');
  return digits;
}

}  // namespace lanescope
