#include "lanescope/report/text_format.h"

#include <fmt/format.h>

#include <cstdlib>

namespace lanescope::report {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Bytes of the first character; 1 if it is not UTF-8.
std::size_t character_size(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
  if (size > text.size()) return 1;
  for (std::size_t i = 1; i < size; ++i)
    if (!continues(text[i])) return 1;
  return size;
}

// C0, DEL and C1 controls (a single byte 0x80..0x9F is one for a Latin-1 terminal), line
// separators, and characters that change the direction of text.
bool acts_on_terminal(std::string_view character) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(character[at]); };
  if (character.size() == 1)
    return byte(0) < 0x20 || byte(0) == 0x7F || (byte(0) >= 0x80 && byte(0) <= 0x9F);
  if (character.size() == 2) return (byte(0) == 0xC2 && byte(1) <= 0x9F) || character == "\xD8\x9C";
  if (character.starts_with("\xE2\x80"))
    return byte(2) == 0x8E || byte(2) == 0x8F || (byte(2) >= 0xA8 && byte(2) <= 0xAE);
  return character.starts_with("\xE2\x81") && byte(2) >= 0xA6 && byte(2) <= 0xA9;
}

}  // namespace

std::string format_time_us(double us) {
  if (us >= 1e6) return fmt::format("{:.3f}s", us / 1e6);
  if (us >= 1e3) return fmt::format("{:.3f}ms", us / 1e3);
  return fmt::format("{:.3f}us", us);
}

std::string format_time_ns(std::int64_t ns) {
  if (ns < 0) return fmt::format("-{}", format_time_us(-static_cast<double>(ns) / 1000.0));
  return format_time_us(static_cast<double>(ns) / 1000.0);
}

std::string format_bytes(std::int64_t bytes) {
  constexpr double kKb = 1024, kMb = 1024 * kKb, kGb = 1024 * kMb;
  const double value = static_cast<double>(bytes), size = value < 0 ? -value : value;
  if (size >= kGb) return fmt::format("{:.2f} GB", value / kGb);
  if (size >= kMb) return fmt::format("{:.2f} MB", value / kMb);
  if (size >= kKb) return fmt::format("{:.2f} KB", value / kKb);
  return fmt::format("{} B", bytes);
}

std::string format_size(std::int64_t bytes) {
  constexpr std::int64_t kTib = std::int64_t{1} << 40;
  if (bytes >= kTib || bytes <= -kTib)
    return fmt::format("{:.2f} TiB", static_cast<double>(bytes) / static_cast<double>(kTib));
  std::string text = format_bytes(bytes);
  const char prefix = text[text.size() - 2];
  if (prefix != 'K' && prefix != 'M' && prefix != 'G') return text;
  text.back() = 'i';
  text += 'B';
  return text;
}

std::string format_count(std::uint64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::size_t rows_shown(std::size_t rows, int row_limit) {
  return row_limit < 0 ? rows : std::min(rows, static_cast<std::size_t>(row_limit));
}

std::string format_percent(double part, double whole) {
  return whole == 0 ? "NaN" : fmt::format("{:.2f}%", part * 100.0 / whole);
}

std::size_t text_length(std::string_view text) {
  std::size_t length = 0;
  for (const char c : text) length += continues(c) ? 0 : 1;
  return length;
}

std::string_view text_prefix(std::string_view text, std::size_t code_points) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (!continues(text[i]) && seen++ == code_points) return text.substr(0, i);
  return text;
}

std::string_view text_suffix(std::string_view text, std::size_t code_points) {
  const std::size_t length = text_length(text);
  if (length <= code_points) return text;
  return text.substr(text_prefix(text, length - code_points).size());
}

std::string pad_left(std::string_view text, std::size_t width) {
  const std::size_t length = text_length(text);
  return std::string(width > length ? width - length : 0, ' ').append(text);
}

std::string pad_right(std::string_view text, std::size_t width) {
  const std::size_t length = text_length(text);
  return std::string(text).append(width > length ? width - length : 0, ' ');
}

std::string shorten(std::string_view text, std::size_t width) {
  if (text_length(text) <= width) return std::string(text);
  if (width <= 3) return std::string(text_prefix(text, width));
  return std::string(text_prefix(text, width - 3)) + "...";
}

std::string one_line(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::string_view character = text.substr(0, character_size(text));
    if (acts_on_terminal(character))
      result += '?';
    else
      result += character;
    text.remove_prefix(character.size());
  }
  return result;
}

namespace {

// The next word. "8 %" and "16.7 ms" are one word, so that no line begins with a unit.
std::string_view next_word(std::string_view text) {
  std::size_t end = std::min(text.find(' '), text.size());
  if (end == 0 || end == text.size() || text[end - 1] < '0' || text[end - 1] > '9')
    return text.substr(0, end);
  for (const std::string_view unit : {"%", "s", "ms", "us"}) {
    const std::string_view rest = text.substr(end + 1);
    if (!rest.starts_with(unit)) continue;
    const std::size_t after = std::min(rest.find(' '), rest.size());
    if (rest.substr(unit.size(), after - unit.size()).find_first_not_of(").,;:") ==
        std::string_view::npos)
      return text.substr(0, end + 1 + after);
  }
  return text.substr(0, end);
}

}  // namespace

std::string wrapped(std::string_view first, std::string_view raw_text, std::size_t width) {
  const std::string indent(first.size(), ' '), harmless = one_line(raw_text);
  std::string_view text = harmless;
  std::string out(first);
  std::size_t column = text_length(first);
  bool line_is_empty = true;
  while (!text.empty()) {
    const std::string_view word = next_word(text);
    const std::size_t space = word.size() == text.size() ? std::string_view::npos : word.size();
    if (!line_is_empty && column + 1 + text_length(word) > width) {
      out += '\n' + indent;
      column = indent.size();
      line_is_empty = true;
    }
    if (!line_is_empty) {
      out += ' ';
      ++column;
    }
    out += word;
    column += text_length(word);
    line_is_empty = false;
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  return out + '\n';
}

}  // namespace lanescope::report
