#include "lanescope/report/markdown_escape.h"

#include <algorithm>

namespace lanescope::report {
namespace {

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

bool is_gap(std::string_view text, std::size_t at) {
  return at >= text.size() || text[at] == ' ' || is_control(text[at]);
}

// Text may be wrapped at its spaces: a word that begins a line must not begin a list ("- ", "1. ")
// nor underline a heading ("===").
bool begins_block(std::string_view text, std::size_t at) {
  const char c = text[at];
  if (c == '-' || c == '+' || c == '=') return at == 0 || is_gap(text, at - 1);
  return (c == '.' || c == ')') && at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9' &&
         is_gap(text, at + 1);
}

}  // namespace

std::string markdown_escaped(std::string_view text) {
  constexpr std::string_view kMeaning = "\\`*_[]<>|#~&!";
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (kMeaning.find(text[i]) != std::string_view::npos || begins_block(text, i)) out += '\\';
    out += is_control(text[i]) ? ' ' : text[i];
  }
  return out;
}

std::string markdown_code(std::string_view text) {
  std::string inside;
  std::size_t run = 0, longest_run = 0;
  for (const char c : text) {
    inside += is_control(c) ? ' ' : c;
    run = c == '`' ? run + 1 : 0;
    longest_run = std::max(longest_run, run);
  }
  const std::string ticks(longest_run + 1, '`');
  // A space at both ends is taken off again when it is rendered, so it keeps backticks apart.
  const bool touches = inside.empty() || inside.front() == '`' || inside.back() == '`';
  return touches ? ticks + ' ' + inside + ' ' + ticks : ticks + inside + ticks;
}

}  // namespace lanescope::report
