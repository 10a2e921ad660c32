// The tokens of a piece of JSON, front to back, for the readers of trace events.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lanescope::format {

// Borrows the text and the token positions of codec::JsonIndex (at least one). Cheap to copy, so
// that a reader can go back. Never reads beyond the text.
struct JsonWalk {
  const char* text;
  const std::uint32_t* at;
  const std::uint32_t* last;  // *last is the size of the text

  JsonWalk(std::string_view whole, std::span<const std::uint32_t> tokens)
      : text(whole.data()), at(tokens.data()), last(tokens.data() + tokens.size() - 1) {}

  static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

  bool ended() const { return at >= last; }
  char peek() const { return at < last ? text[*at] : '\0'; }
  bool take(char c) {
    if (peek() != c) return false;
    ++at;
    return true;
  }
  // Returns the current token, without blanks after it, and moves to the next one.
  // Not when ended().
  std::string_view take_token() {
    const char* begin = text + at[0];
    const char* end = text + at[1];
    while (end > begin && is_blank(end[-1])) --end;
    ++at;
    return {begin, static_cast<std::size_t>(end - begin)};
  }
  // Takes the text between the quotes.
  bool take_string(std::string_view& raw) {
    if (peek() != '"') return false;
    raw = take_token();
    if (raw.size() < 2 || raw.back() != '"') return false;
    raw = raw.substr(1, raw.size() - 2);
    return true;
  }
  // Takes a list or an object: counts brackets, ignores the content.
  bool take_nested(std::string_view& raw) {
    const std::uint32_t begin = *at;
    int depth = 0;
    while (!ended()) {
      const char c = text[*at++];
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && --depth == 0) {
        raw = {text + begin, at[-1] + 1 - begin};
        return true;
      }
    }
    return false;
  }
};

}  // namespace lanescope::format
