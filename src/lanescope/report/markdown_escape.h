// Text that nobody vouches for (names of a trace, paths), made fit for Markdown.
#pragma once
#include <string>
#include <string_view>

namespace lanescope::report {

// Renders as the same characters wherever inline text may stand, table cells included: whatever
// Markdown (CommonMark and GitHub's tables, strikethrough and HTML) gives a meaning gets a
// backslash, line breaks and other control characters become spaces. Not for code spans. Linear.
// Any thread.
std::string markdown_escaped(std::string_view text);

// A code span that holds the text: delimited by more backticks than any run in it, line breaks and
// control characters as spaces. Not for table cells, which a bar ends even inside of a span.
std::string markdown_code(std::string_view text);

}  // namespace lanescope::report
