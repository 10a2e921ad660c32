// Text inside JSON strings: how it is escaped. What escapes mean: base/json_escape.h.
#pragma once
#include <string>
#include <string_view>

namespace lanescope::codec {

// Appends `text` so that it can stand between quotes: ", \ and control characters are escaped,
// bytes that are not UTF-8 become U+FFFD, everything else stays.
void append_escaped_json(std::string& out, std::string_view text);

// The text with each byte that is not UTF-8 replaced by U+FFFD. `replaced` is set when there was
// one.
std::string valid_utf8(std::string_view text, bool* replaced = nullptr);

// Bytes of the UTF-8 sequence at text[at]; 0: it is none.
std::size_t utf8_length(std::string_view text, std::size_t at);

}  // namespace lanescope::codec
