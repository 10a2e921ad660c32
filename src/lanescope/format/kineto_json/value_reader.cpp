// Problem: a dozen values per event, most of them short integers, and texts that the event before
// had, too. Idea: read digits eight at a time. Search texts and reals first among the latest ones,
// by length and last bytes, then compare in full. Cost: a few nanoseconds per value.
#include "lanescope/format/kineto_json/value_reader.h"

#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "lanescope/base/json_escape.h"
#include "lanescope/codec/decimal.h"
#include "lanescope/codec/json_mend.h"

namespace lanescope::format {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// NaN and the infinities as C++, Python and JavaScript print them. Nothing: another token.
std::optional<double> not_a_number(std::string_view token) {
  std::string_view bare = token;
  const bool negative = !bare.empty() && bare[0] == '-';
  if (negative) bare.remove_prefix(1);
  if (bare == "nan" || bare == "NaN" || bare == "NAN")
    return std::numeric_limits<double>::quiet_NaN();
  if (bare == "inf" || bare == "Infinity" || bare == "Inf" || bare == "INF")
    return negative ? -std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::infinity();
  return std::nullopt;
}

void set_integer(ArgValue& value, std::int64_t whole) {
  value.type = whole >= INT32_MIN && whole <= INT32_MAX ? ArgType::kInt32 : ArgType::kInt64;
  value.bits = static_cast<std::uint64_t>(whole);
}

// Up to 16 digits, perhaps after a minus: nearly every number of a trace.
bool read_plain_integer(ArgValue& value) {
  const bool negative = !value.raw.empty() && value.raw[0] == '-';
  const std::string_view digits = value.raw.substr(negative ? 1 : 0);
  if (digits.empty() || digits.size() > 16 || (digits[0] == '0' && digits.size() > 1)) return false;
  std::uint64_t whole = 0;
  if (!codec::parse_digits(digits.data(), digits.size(), whole)) return false;
  if (negative && whole == 0) return false;  // -0 is a double
  const auto positive = static_cast<std::int64_t>(whole);
  set_integer(value, negative ? -positive : positive);
  return true;
}

// The place of a text, from its length and its last eight bytes (shorter texts: the first ones).
std::size_t recent_slot(std::string_view text, std::size_t slots) {
  std::uint64_t word = 0;
  if (text.size() >= 8)
    std::memcpy(&word, text.data() + text.size() - 8, 8);
  else
    for (const char c : text) word = word << 8 | static_cast<unsigned char>(c);
  word = (word ^ text.size()) * 0x9e3779b97f4a7c15;
  return static_cast<std::size_t>(word >> 32) & (slots - 1);
}

}  // namespace

bool parse_plain_time(std::string_view token, std::int64_t& ns) {
  constexpr std::size_t kWhole = 14, kDecimals = 3;
  if (token.size() > kWhole + 1 + kDecimals || token.empty()) return false;
  std::size_t point = token.size() - std::min(token.size(), kDecimals + 1);
  if (token[point] != '.') point = std::min(token.find('.'), token.size());
  if (point == 0 || point > kWhole) return false;
  std::uint64_t whole = 0, fraction = 0;
  if (!codec::parse_digits(token.data(), point, whole)) return false;
  if (point < token.size()) {
    const std::size_t decimals = token.size() - point - 1;
    constexpr std::uint64_t kScale[] = {0, 100, 10, 1};
    if (decimals == 0 || decimals > kDecimals ||
        !codec::parse_digits(token.data() + point + 1, decimals, fraction))
      return false;
    fraction *= kScale[decimals];
  }
  ns = static_cast<std::int64_t>(whole * 1000 + fraction);
  return true;
}

double parse_double(std::string_view token) {
  double value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error == std::errc()) return value;
  return std::strtod(std::string(token).c_str(), nullptr);
}

bool read_number(ArgValue& value) {
  if (read_plain_integer(value)) return true;
  const std::string_view text = value.raw;
  const bool negative = !text.empty() && text[0] == '-';
  if (!codec::is_json_number(text)) return false;
  if (text.find_first_of(".eE") == std::string_view::npos && text != "-0") {
    std::int64_t whole = 0;
    const char* const end = text.data() + text.size();
    if (std::from_chars(text.data(), end, whole).ec == std::errc()) {
      set_integer(value, whole);
      return true;
    }
    std::uint64_t big = 0;
    if (!negative && std::from_chars(text.data(), end, big).ec == std::errc()) {
      value.type = ArgType::kUint64;
      value.bits = big;
      return true;
    }
  }
  value.type = ArgType::kDouble;
  value.bits = std::bit_cast<std::uint64_t>(parse_double(text));
  return true;
}

bool ValueReader::read(JsonWalk& walk, ArgValue& value, bool& odd) {
  const char first = walk.peek();
  if (first == '"') {
    value.type = ArgType::kString;
    StringId id{};
    if (!walk.take_string(value.raw) || !read_string(value.raw, id)) return false;
    value.bits = raw(id);
    return true;
  }
  if (first == '{' || first == '[') {
    value.type = ArgType::kJson;
    StringId id{};
    if (!walk.take_nested(value.raw) || !read_nested(value.raw, id)) return false;
    value.bits = raw(id);
    return true;
  }
  if (walk.ended()) return false;
  value.raw = walk.take_token();
  if (first == '-' || is_digit(first)) {
    if (read_plain_integer(value) || read_real(value)) return true;
  } else if (value.raw == "null") {
    value.type = ArgType::kNull;
    return true;
  } else if (value.raw == "true" || value.raw == "false") {
    value.type = first == 't' ? ArgType::kTrue : ArgType::kFalse;
    return true;
  }
  const std::optional<double> number = not_a_number(value.raw);
  if (!number) return false;
  odd = true;
  // JSON has no NaN; 1e999 is infinite
  value.type = *number != *number ? ArgType::kNull : ArgType::kDouble;
  if (value.type == ArgType::kDouble) value.bits = std::bit_cast<std::uint64_t>(*number);
  return true;
}

bool ValueReader::read_string(std::string_view raw, StringId& id) {
  RecentText& recent = recent_texts_[recent_slot(raw, recent_texts_.size())];
  if (!recent.text || recent.size != raw.size() ||
      std::memcmp(recent.text, raw.data(), raw.size()) != 0) {
    if (has_escape(raw)) {  // never among the recent ones
      if (!unescape_json(raw, scratch_)) return false;
      id = builder_.intern(scratch_);
      return true;
    }
    recent.id = builder_.intern(raw);
    recent.text = builder_.text(recent.id).data();
    recent.size = raw.size();
  }
  id = recent.id;
  return true;
}

// The walk only counts brackets; this checks each distinct text once.
bool ValueReader::read_nested(std::string_view text, StringId& id) {
  RecentText& recent = recent_nested_[recent_slot(text, recent_nested_.size())];
  if (recent.text && recent.size == text.size() &&
      std::memcmp(recent.text, text.data(), text.size()) == 0) {
    id = recent.id;
    return true;
  }
  id = builder_.intern(text);
  const std::uint32_t index = raw(id);
  if (index >= strict_.size()) strict_.resize(index + 1 + index / 2);
  if (!strict_[index]) strict_[index] = codec::is_strict_json(text);
  if (!strict_[index]) return false;
  recent = {builder_.text(id).data(), text.size(), id};
  return true;
}

// A number of any kind; searches those with a point first among the latest.
bool ValueReader::read_real(ArgValue& value) {
  const std::string_view text = value.raw;
  std::array<std::uint64_t, 2> words{};
  if (text.size() > sizeof words || text.find('.') == std::string_view::npos)
    return read_number(value);
  std::memcpy(words.data(), text.data(), text.size());
  RecentReal& recent = recent_reals_[recent_slot(text, recent_reals_.size())];
  if (recent.text == words) {
    value.type = ArgType::kDouble;
    value.bits = recent.bits;
    return true;
  }
  if (!read_number(value)) return false;
  if (value.type == ArgType::kDouble) recent = {words, value.bits};
  return true;
}

}  // namespace lanescope::format
