// Reads one number of a text such as /proc/self/status, without taking memory.
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lanescope {

// The number after `name`: 112 for "VmSwap:\t 112 kB" and "VmSwap:". Nothing: `name` is not in the text.
inline std::optional<std::uint64_t> number_after(std::string_view text, std::string_view name) {
  std::size_t at = text.find(name);
  if (at == text.npos) return std::nullopt;
  at = std::min(text.find_first_not_of(" \t", at + name.size()), text.size());
  std::uint64_t value = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

}  // namespace lanescope
