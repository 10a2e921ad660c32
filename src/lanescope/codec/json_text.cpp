#include "lanescope/codec/json_text.h"

#include <simdjson.h>

#include <algorithm>

namespace lanescope::codec {
bool is_utf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;
  if (first < 0xe0) return tail(1) ? 2 : 0;
  if (first < 0xf0) {  // neither overlong nor a surrogate
    if (!tail(1) || !tail(2)) return 0;
    return (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ? 0 : 3;
  }
  if (first < 0xf5) {  // neither overlong nor beyond U+10FFFF
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    return (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f) ? 0 : 4;
  }
  return 0;
}

std::string_view without_blanks_around(std::string_view json) {
  constexpr std::string_view kBlanks = " \t\r\n";
  json.remove_prefix(std::min(json.find_first_not_of(kBlanks), json.size()));
  json.remove_suffix(json.size() - (json.find_last_not_of(kBlanks) + 1));
  return json;
}

std::string valid_utf8(std::string_view text, bool* replaced) {
  if (is_utf8(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length > 0) {
      out.append(text, at, length);
    } else {
      out += "\xef\xbf\xbd";
      if (replaced) *replaced = true;
    }
    at += length > 0 ? length : 1;
  }
  return out;
}

void append_escaped_json(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::size_t run = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
      ++at;
      continue;
    }
    if (c >= 0x80) {
      if (const std::size_t length = utf8_length(text, at); length > 0) {
        at += length;
        continue;
      }
    }
    out.append(text, run, at - run);
    run = ++at;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (c >= 0x80) {
          out += "\xef\xbf\xbd";
        } else {
          out += "\\u00";
          out.push_back(kHex[c >> 4]);
          out.push_back(kHex[c & 15]);
        }
    }
  }
  out.append(text, run, text.size() - run);
}

}  // namespace lanescope::codec
