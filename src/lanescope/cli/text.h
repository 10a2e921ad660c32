// Makes untrusted text safe to show: names in traces, file names, flags.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/with_commas.h"  // IWYU pragma: export

namespace lanescope::cli {

// Text that is safe for a terminal. Escape sequences could move the cursor, rename the window or
// hide rows. So control characters other than newline and tab become \u001b, and so do DEL, C1
// (U+0080..U+009F) and characters that change the direction of writing. Bytes that are not UTF-8
// become \x9b. Inside JSON, the \u form still means the same text.
std::string sanitized(std::string_view text);
// The same for one line of a message: newline and tab are escaped, too.
std::string sanitized_line(std::string_view text);

// Whether the text is safe for a terminal as it is; newline and tab are allowed.
bool is_safe_for_terminal(std::string_view text);

// Candidates that the user may have meant, best first: few edits away (a third of the
// length, at least 1), ignoring case, or one is the beginning of the other. Cost: length
// squared per candidate.
std::vector<std::string> close_matches(std::string_view wanted,
                                       const std::vector<std::string>& candidates,
                                       std::size_t limit = 3);

// "a", "a or b", "a, b or c".
std::string joined_or(const std::vector<std::string>& words);

}  // namespace lanescope::cli
