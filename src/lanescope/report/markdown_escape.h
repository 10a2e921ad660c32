// Escapes untrusted text (names of a trace, paths) for Markdown.
#pragma once
#include <string>
#include <string_view>

namespace lanescope::report {

// Markdown shows the result as the same characters, in inline text and in table cells. Characters
// with a meaning in Markdown (CommonMark, GitHub's tables, strikethrough, HTML) get a backslash;
// line breaks and other control characters become spaces. Not for code spans. Linear. Any thread.
std::string markdown_escaped(std::string_view text);

// A code span with the text. It is delimited by more backticks than any run of them in the text;
// line breaks and control characters become spaces. Not for table cells: a | ends a cell even
// inside a code span.
std::string markdown_code(std::string_view text);

}  // namespace lanescope::report
