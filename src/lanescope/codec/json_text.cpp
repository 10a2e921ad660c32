#include "lanescope/codec/json_text.h"

namespace lanescope::codec {
namespace {

void append_utf8(std::string& out, unsigned code) {
  const auto byte = [&](unsigned value) { out.push_back(static_cast<char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6);
    byte(0x80 | (code & 63));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12);
    byte(0x80 | (code >> 6 & 63));
    byte(0x80 | (code & 63));
  } else {
    byte(0xf0 | code >> 18);
    byte(0x80 | (code >> 12 & 63));
    byte(0x80 | (code >> 6 & 63));
    byte(0x80 | (code & 63));
  }
}

}  // namespace

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

int hex4_value(std::string_view text, std::size_t at) {
  if (at + 4 > text.size()) return -1;
  int value = 0;
  for (std::size_t i = at; i < at + 4; ++i) {
    const char c = text[i];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

bool unescape_json(std::string_view raw, std::string& out) {
  out.clear();
  for (std::size_t at = 0; at < raw.size();) {
    const std::size_t stop = std::min(raw.find('\\', at), raw.size());
    out.append(raw, at, stop - at);
    at = stop;
    if (at == raw.size()) break;
    if (at + 1 >= raw.size()) return false;
    const char kind = raw[at + 1];
    at += 2;
    switch (kind) {
      case '"':
      case '\\':
      case '/':
        out.push_back(kind);
        break;
      case 'b':
        out.push_back('\b');
        break;
      case 'f':
        out.push_back('\f');
        break;
      case 'n':
        out.push_back('\n');
        break;
      case 'r':
        out.push_back('\r');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'u': {
        int code = hex4_value(raw, at);
        if (code < 0 || (code >= 0xdc00 && code < 0xe000)) return false;
        at += 4;
        if (code >= 0xd800 && code < 0xdc00) {
          const int low = raw.substr(at, 2) == "\\u" ? hex4_value(raw, at + 2) : -1;
          if (low < 0xdc00 || low >= 0xe000) return false;
          code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
          at += 6;
        }
        append_utf8(out, static_cast<unsigned>(code));
        break;
      }
      default:
        return false;
    }
  }
  return true;
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
