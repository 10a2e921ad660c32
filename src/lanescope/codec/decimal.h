// Decimal text to integers, exactly: a double cannot hold nanoseconds since 1970.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lanescope::codec {

enum class DecimalStatus : std::uint8_t { kOk, kNotANumber, kOutOfRange };

struct Decimal {
  DecimalStatus status = DecimalStatus::kNotANumber;
  std::int64_t value = 0;  // text times 10^scale, rounded towards zero
  bool cut = false;        // a digit other than 0 was cut off
};

// [-+]digits[.digits][e[-+]digits] and nothing else. parse_decimal("4365001498111.3805", 3) is
// {kOk, 4365001498111380, cut}. Cost: one pass, no allocation.
Decimal parse_decimal(std::string_view text, int scale);

// The number in the `count` digits (1 to 16) at `at`; false: one of them is not a digit. Reads up
// to 16 bytes, whatever `count` is. Cost: two nanoseconds.
inline bool parse_digits(const char* at, std::size_t count, std::uint64_t& value);

// A number as JSON allows it: -0.5e+3, but not +1, 01, .5 or 1.
bool is_json_number(std::string_view text);

namespace internal {
// Up to eight digits in one word, the first digit in the byte with the lowest address. Neighbours
// are joined in pairs: 8 digits, then 4 numbers below 100, then 2 below 10000, then 1.
inline bool parse_eight_digits(const char* at, std::size_t count, std::uint64_t& value) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  const unsigned unused = 64 - 8 * static_cast<unsigned>(count);
  std::uint64_t digits = (word << unused) ^ (('0' * kOnes) << unused);
  if (((digits | (digits + (0x7f - 9) * kOnes)) & 0x80 * kOnes) != 0) return false;
  digits = (digits * 10 + (digits >> 8)) & 0x00ff00ff00ff00ff;
  digits = (digits * 100 + (digits >> 16)) & 0x0000ffff0000ffff;
  value = (digits * 10000 + (digits >> 32)) & 0xffffffff;
  return true;
}
}  // namespace internal

inline bool parse_digits(const char* at, std::size_t count, std::uint64_t& value) {
  if (count <= 8) return internal::parse_eight_digits(at, count, value);
  std::uint64_t high = 0, low = 0;
  constexpr std::uint64_t kPowers[] = {1,      10,      100,      1000,     10000,
                                       100000, 1000000, 10000000, 100000000};
  if (!internal::parse_eight_digits(at, 8, high) ||
      !internal::parse_eight_digits(at + 8, count - 8, low))
    return false;
  value = high * kPowers[count - 8] + low;
  return true;
}

}  // namespace lanescope::codec
