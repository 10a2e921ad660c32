// Text that people read, made from text that nobody vouches for: names in traces, file names,
// flags.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lanescope::cli {

// What a terminal may be shown. Escape sequences could move its cursor, rename its window or hide
// rows, so control characters other than newline and tab become \u001b, as do DEL, C1
// (U+0080..U+009F) and the characters that turn the direction of writing; bytes that are not UTF-8
// become \x9b. Inside JSON the \u form still reads back as the same text.
std::string sanitized(std::string_view text);
// The same for one line of a message: newline and tab are escaped, too.
std::string sanitized_line(std::string_view text);

// Whether the text can go to a terminal as it is, newline and tab allowed.
bool is_safe_for_terminal(std::string_view text);

// Candidates that a person may have meant, best first: few edits apart (a third of the length, at
// least 1), upper and lower case alike, or one is the beginning of the other. Cost: length squared
// for each candidate.
std::vector<std::string> close_matches(std::string_view wanted,
                                       const std::vector<std::string>& candidates,
                                       std::size_t limit = 3);

// "a", "a or b", "a, b or c".
std::string joined_or(const std::vector<std::string>& words);

// 1234567 -> "1,234,567".
std::string with_commas(std::uint64_t number);

}  // namespace lanescope::cli
