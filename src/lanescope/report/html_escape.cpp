#include "lanescope/report/html_escape.h"

#include <fmt/format.h>

#include <algorithm>

#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

struct CodePoint {
  char32_t value = 0;
  std::size_t size = 0;  // bytes; 0: not UTF-8
};

// Shortest form only, no surrogates, nothing beyond U+10FFFF (RFC 3629).
CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (size == 0 || first > 0xF4 || size > text.size()) return {};
  char32_t value = first & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    value = value << 6U | (byte(i) & 0x3FU);
  }
  const bool is_long = (size == 3 && value < 0x800) || (size == 4 && value < 0x10000);
  if (is_long || (value >= 0xD800 && value <= 0xDFFF) || value > 0x10FFFF) return {};
  return {value, size};
}

bool is_written_as_number(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x2028 || c == 0x2029 ||  // controls, lines
         c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) ||  // direction
         (c >= 0xFDD0 && c <= 0xFDEF) || (c & 0xFFFEU) == 0xFFFE;
}

const char* entity(char32_t c) {
  switch (c) {
    case U'&':
      return "&amp;";
    case U'<':
      return "&lt;";
    case U'>':
      return "&gt;";
    case U'"':
      return "&quot;";
    case U'\'':
      return "&#39;";
    default:
      return nullptr;
  }
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = decode(text);
    if (c.size == 0)
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(text[0])));
    else if (is_written_as_number(c.value))
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c.value));
    else if (const char* name = entity(c.value))
      out += name;
    else
      out += text.substr(0, c.size);
    text.remove_prefix(std::max<std::size_t>(c.size, 1));
  }
  return out;
}

std::string html_shortened(std::string_view text, std::size_t width) {
  // A code point takes at most 4 bytes: cut first, so that a name of megabytes costs nothing.
  return html_escaped(shorten(text.substr(0, 4 * width + 4), width));
}

}  // namespace lanescope::report
