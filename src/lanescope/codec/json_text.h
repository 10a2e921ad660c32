// Text inside JSON strings: what escapes mean, and how text is escaped.
#pragma once
#include <string>
#include <string_view>

namespace lanescope::codec {

// `raw` is what stands between the quotes. False: a bad escape or half a surrogate pair; `out` is
// then of no use.
bool unescape_json(std::string_view raw, std::string& out);

// Appends `text` so that it can stand between quotes: ", \ and control characters are escaped,
// bytes that are not UTF-8 become U+FFFD, everything else stays.
void append_escaped_json(std::string& out, std::string_view text);

// Bytes of the UTF-8 sequence at text[at]; 0: it is none.
std::size_t utf8_length(std::string_view text, std::size_t at);
// The value of the four hex digits of \uXXXX at text[at]; -1: they are not.
int hex4_value(std::string_view text, std::size_t at);

}  // namespace lanescope::codec
