#include "lanescope/base/json_escape.h"

#include <algorithm>

#include "lanescope/base/utf8.h"

namespace lanescope {
namespace {

// Decodes the \uXXXX whose digits start at raw[at], and its second half if it is the first of a
// surrogate pair. Moves `at` past it.
bool append_unicode(std::string_view raw, std::size_t& at, EscapePolicy policy, std::string& out) {
  int code = hex4_value(raw, at);
  if (code < 0) return false;
  at += 4;
  if (code >= 0xd800 && code < 0xdc00 && raw.substr(at, 2) == "\\u") {
    const int low = hex4_value(raw, at + 2);
    if (low >= 0xdc00 && low < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      at += 6;
    }
  }
  if (code >= 0xd800 && code < 0xe000) {
    if (policy == EscapePolicy::kStrict) return false;
    code = 0xfffd;
  }
  append_utf8(out, static_cast<std::uint32_t>(code));
  return true;
}

}  // namespace

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

bool unescape_json(std::string_view raw, std::string& out, EscapePolicy policy) {
  out.clear();
  for (std::size_t at = 0; at < raw.size();) {
    const std::size_t stop = std::min(raw.find('\\', at), raw.size());
    out.append(raw, at, stop - at);
    if (stop == raw.size()) break;
    if (stop + 1 == raw.size()) return false;
    const char kind = raw[stop + 1];
    at = stop + 2;
    constexpr std::string_view kKinds = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (const std::size_t known = kKinds.find(kind); known != std::string_view::npos)
      out.push_back(kMeanings[known]);
    else if (kind == 'u' ? !append_unicode(raw, at, policy, out) : policy == EscapePolicy::kStrict)
      return false;
    else if (kind != 'u')
      out.push_back(kind);
  }
  return true;
}

}  // namespace lanescope
