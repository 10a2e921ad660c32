// Escapes text for JSON strings. Decoding is in base/json_escape.h.
#pragma once
#include <string>
#include <string_view>

namespace lanescope::codec {

// Appends `text` as the inside of a JSON string: escapes ", \ and control characters, turns bytes
// that are not UTF-8 into U+FFFD, and keeps everything else.
void append_escaped_json(std::string& out, std::string_view text);

// The text with U+FFFD for each byte that is not UTF-8. Sets `replaced` if there was one.
std::string valid_utf8(std::string_view text, bool* replaced = nullptr);

// Whether all of it is UTF-8. Cost: several GB/s.
bool is_utf8(std::string_view text);

// The text without the blanks of JSON (space, tab, line ends) at its two ends.
std::string_view without_blanks_around(std::string_view json);

// Bytes of the UTF-8 sequence at text[at]; 0: there is none.
std::size_t utf8_length(std::string_view text, std::size_t at);

}  // namespace lanescope::codec
