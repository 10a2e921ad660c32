#include "lanescope/cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <utility>

namespace lanescope::cli {
namespace {

struct CodePoint {
  char32_t value = 0;
  std::size_t size = 0;  // bytes; 0: not UTF-8
};

// Well-formed UTF-8 only (Unicode table 3-7): no overlong forms, no surrogates,
// nothing over U+10FFFF.
CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t size = first >= 0xC2 && first <= 0xDF   ? 2
                           : first >= 0xE0 && first <= 0xEF ? 3
                           : first >= 0xF0 && first <= 0xF4 ? 4
                                                            : 0;
  if (size == 0 || text.size() < size) return {};
  char32_t value = first & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[size] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
    return {};
  return {value, size};
}

bool acts_on_terminal(char32_t c, bool one_line) {
  if (c == U'\n' || c == U'\t') return one_line;
  if (c < 0x20 || (c >= 0x7F && c <= 0x9F)) return true;
  if (c == 0x2028 || c == 0x2029) return true;         // line, paragraph separator
  return c == 0x061C || c == 0x200E || c == 0x200F ||  // direction marks
         (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);  // embeddings, overrides, isolates
}

std::string sanitize(std::string_view text, bool one_line) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = decode(text);
    if (c.size == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(text[0])));
    } else if (acts_on_terminal(c.value, one_line)) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c.value));
    } else {
      out += text.substr(0, c.size);
    }
    text.remove_prefix(std::max<std::size_t>(c.size, 1));
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Insertions, deletions, replacements and swaps of neighbours that turn a into b.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string sanitized(std::string_view text) { return sanitize(text, false); }
std::string sanitized_line(std::string_view text) { return sanitize(text, true); }

bool is_safe_for_terminal(std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = decode(text);
    if (c.size == 0 || acts_on_terminal(c.value, false)) return false;
    text.remove_prefix(c.size);
  }
  return true;
}

std::vector<std::string> close_matches(std::string_view wanted,
                                       const std::vector<std::string>& candidates,
                                       std::size_t limit) {
  constexpr std::size_t kLongest = 200;  // longer texts are not typing mistakes; limits the cost
  const std::string key = lower(wanted.substr(0, kLongest));
  if (key.empty()) return {};
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const std::string& candidate : candidates) {
    const std::string other = lower(std::string_view(candidate).substr(0, kLongest));
    const bool prefix =
        key.size() >= 3 && (other.starts_with(key) || key.starts_with(other)) && other.size() >= 3;
    const std::size_t distance = prefix ? 1 : edits(key, other);
    if (distance <= std::max<std::size_t>(1, key.size() / 3) && distance < other.size()) {
      found.emplace_back(distance, candidate);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> best;
  for (auto& match : found) {
    if (best.size() == limit) break;
    best.push_back(std::move(match.second));
  }
  return best;
}

std::string joined_or(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

}  // namespace lanescope::cli
