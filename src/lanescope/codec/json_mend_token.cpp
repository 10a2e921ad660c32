#include "lanescope/codec/json_mend_token.h"

#include <cstring>

#include "lanescope/base/json_escape.h"
#include "lanescope/codec/decimal.h"
#include "lanescope/codec/json_text.h"

namespace lanescope::codec {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// +5, 007 and .5 as JSON writes them; any other token becomes another token.
std::string plain_number(std::string_view token) {
  std::string number;
  if (token[0] == '-') number.push_back('-');
  if (token[0] == '-' || token[0] == '+') token.remove_prefix(1);
  while (token.size() > 1 && token[0] == '0' && token[1] >= '0' && token[1] <= '9')
    token.remove_prefix(1);
  if (token.starts_with('.')) number.push_back('0');
  if (token.ends_with('.')) token.remove_suffix(1);
  return number.append(token);
}

bool starts_like(std::string_view token, std::string_view lower) {
  if (token.size() < lower.size()) return false;
  for (std::size_t i = 0; i < lower.size(); ++i)
    if ((token[i] >= 'A' && token[i] <= 'Z' ? token[i] + 32 : token[i]) != lower[i]) return false;
  return true;
}

void append_control(std::string& out, char c) {
  constexpr char kHex[] = "0123456789abcdef";
  if (c == '\n')
    out += "\\n";
  else if (c == '\t')
    out += "\\t";
  else if (c == '\r')
    out += "\\r";
  else {
    out += "\\u00";
    out.push_back(kHex[(c >> 4) & 15]);
    out.push_back(kHex[c & 15]);
  }
}

constexpr std::size_t kLoneSurrogate = ~std::size_t{0};

// Bytes of the escape \uXXXX at `at`, or of the two escapes that make one character. 0: it is no escape. kLoneSurrogate: the
// other half of the character is missing.
std::size_t unicode_escape_length(std::string_view text, std::size_t at) {
  const int value = hex4_value(text, at + 2);
  if (value < 0) return 0;
  if (value < 0xd800 || value >= 0xe000) return 6;
  const int low = value < 0xdc00 && text.substr(at + 6, 2) == "\\u" ? hex4_value(text, at + 8) : -1;
  return low >= 0xdc00 && low < 0xe000 ? 12 : kLoneSurrogate;
}

}  // namespace

void TokenMender::write_scalar(std::size_t from, std::size_t end) {
  const std::string_view token = text.substr(from, end - from);
  if (token == "true" || token == "false" || token == "null" || is_json_number(token)) {
    out += token;
    return;
  }
  std::string_view bare = token;
  const bool negative = bare[0] == '-';
  if (bare[0] == '-' || bare[0] == '+') bare.remove_prefix(1);
  if (starts_like(bare, "nan") || starts_like(bare, "1.#")) {
    mends.add(Mend::kNotANumber, from);
    out += "null";
  } else if (starts_like(bare, "inf")) {
    mends.add(Mend::kNotANumber, from);
    out += negative ? "-1e999" : "1e999";
  } else if (token == "True" || token == "False" || token == "None") {
    mends.add(Mend::kSyntax, from);
    out += token == "True" ? "true" : token == "False" ? "false" : "null";
  } else if (const std::string number = plain_number(token); is_json_number(number)) {
    mends.add(Mend::kSyntax, from);
    out += number;
  } else {  // a bare word is kept as a text
    mends.add(Mend::kText, from);
    out.push_back('"');
    for (std::size_t i = from; i < end;) i = write_character(i, end);
    out.push_back('"');
  }
}

std::size_t TokenMender::write_character(std::size_t at, std::size_t end) {
  const char c = text[at];
  if (c == '"' || c == '\\') {
    out.push_back('\\');
    out.push_back(c);
    return at + 1;
  }
  if (static_cast<unsigned char>(c) < 0x20) {
    append_control(out, c);
    return at + 1;
  }
  const std::size_t length = utf8_length(text.substr(0, end), at);
  if (length == 0) {
    mends.add(Mend::kUtf8, at);
    out += kReplacement;
    return at + 1;
  }
  out.append(text, at, length);
  return at + length;
}

std::size_t TokenMender::write_escape(const JsonContext& json, std::size_t at, bool in_key) {
  const char next = at + 1 < text.size() ? text[at + 1] : '\0';
  std::size_t length = 0;  // of a strict escape
  if (next == 'u') {
    length = unicode_escape_length(text, at);
    if (length == kLoneSurrogate) {
      mends.add(Mend::kUtf8, at);
      out += "\\ufffd";
      return at + 6;
    }
  } else if (next != '\0' && std::strchr("\"\\/bfnrt", next) &&
             !(next == '"' && !in_key && next_key_follows(json, at + 2))) {
    length = 2;
  }
  if (length > 0) {
    out.append(text, at, length);
    return at + length;
  }
  mends.add(Mend::kText, at);  // a backslash of a Windows path
  out += "\\\\";
  return at + 1;
}

}  // namespace lanescope::codec
