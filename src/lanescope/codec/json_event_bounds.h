// Where trace events begin and end in text that may be damaged: guesses from their first keys, without
// parsing.
#pragma once
#include <cstddef>
#include <string_view>

namespace lanescope::codec {

inline bool is_json_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// The first offset at or after `at` that is no blank; text.size(): none.
std::size_t skip_blanks(std::string_view text, std::size_t at);

// True: `quote` opens a key, with its colon, that some writer puts first in a trace event.
bool starts_event_key(std::string_view text, std::size_t quote);

// The next `{` at or after `from` that starts a trace event, by its first key; npos: there is none.
std::size_t find_event_start(std::string_view text, std::size_t from);
// The offset after the last "}," in `text` that is followed by the start of an event, so text[0,
// result) holds whole events; 0: none. It can be wrong inside a string or a nested list; parsing
// text[0, result) shows whether it is.
std::size_t find_last_event_end(std::string_view text);

}  // namespace lanescope::codec
