#include "lanescope/codec/decimal.h"

#include <limits>

namespace lanescope::codec {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The digits of whole and fraction, without the point between them.
struct Digits {
  std::string_view whole, fraction;
  std::size_t size() const { return whole.size() + fraction.size(); }
  unsigned operator[](std::size_t i) const {
    return static_cast<unsigned>((i < whole.size() ? whole[i] : fraction[i - whole.size()]) - '0');
  }
};

std::string_view take_digits(std::string_view& text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

}  // namespace

Decimal parse_decimal(std::string_view text, int scale) {
  Decimal result;
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  Digits digits;
  digits.whole = take_digits(text);
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    digits.fraction = take_digits(text);
  }
  if (digits.size() == 0) return result;
  std::int64_t exponent = 0;
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    bool down = false;
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
      down = text[0] == '-';
      text.remove_prefix(1);
    }
    const std::string_view power = take_digits(text);
    if (power.empty()) return result;
    for (const char c : power)
      if (exponent < 1'000'000'000) exponent = exponent * 10 + (c - '0');
    if (down) exponent = -exponent;
  }
  if (!text.empty()) return result;

  // The first `wanted` digits are the value; missing digits are zeros.
  const std::int64_t wanted = static_cast<std::int64_t>(digits.whole.size()) + exponent + scale;
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t value = 0;
  std::size_t at = 0;
  for (; static_cast<std::int64_t>(at) < wanted; ++at) {
    if (at >= digits.size() && value == 0) break;
    const unsigned digit = at < digits.size() ? digits[at] : 0;
    if (value > (kMax - digit) / 10) {
      result.status = DecimalStatus::kOutOfRange;
      return result;
    }
    value = value * 10 + digit;
  }
  for (; at < digits.size() && !result.cut; ++at) result.cut = digits[at] != 0;
  result.status = DecimalStatus::kOk;
  result.value = negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
  return result;
}

bool is_json_number(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  const std::string_view whole = take_digits(text);
  if (whole.empty() || (whole.size() > 1 && whole[0] == '0')) return false;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    if (take_digits(text).empty()) return false;
  }
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
    if (take_digits(text).empty()) return false;
  }
  return text.empty();
}

}  // namespace lanescope::codec
