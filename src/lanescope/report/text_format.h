// How this project writes numbers for people, and how it measures text. Times come in ns or, where
// torch's doubles matter, us.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lanescope::report {

// torch's _format_time: "1.500s" from 1e6 us, "1.500ms" from 1e3 us, else "1.500us".
std::string format_time_us(double us);
std::string format_time_ns(std::int64_t ns);
// torch's _format_memory, 1024-based: "1.50 GB", "-2.00 KB", "12 B".
std::string format_bytes(std::int64_t bytes);
// 1234567 -> "1,234,567".
std::string format_count(std::uint64_t count);
std::string format_percent(double part, double whole);  // "12.34%"; "NaN" of nothing
// How many of `rows` --row-limit lets through; a negative limit: all.
std::size_t rows_shown(std::size_t rows, int row_limit);

// Length and cutting in code points; bytes that are not UTF-8 count one each. Python measures text
// so.
std::size_t text_length(std::string_view text);
std::string_view text_prefix(std::string_view text, std::size_t code_points);
std::string_view text_suffix(std::string_view text, std::size_t code_points);
// Padded with spaces to `width` code points; longer text is left whole.
std::string pad_left(std::string_view text, std::size_t width);
std::string pad_right(std::string_view text, std::size_t width);
// At most `width` code points; what is cut ends in "...". For terminals, not for torch's table.
std::string shorten(std::string_view text, std::size_t width);
// For names and other texts of a trace, which nobody vouches for: characters that act on a terminal
// (escape codes, line breaks, C1 controls, what turns the direction of writing) become one '?'
// each.
std::string one_line(std::string_view text);

// Breaks at spaces so that lines stay within `width` columns; the first line begins with `first`,
// later ones are indented as far. A number and its unit ("8 %", "16.7 ms") stay together. Ends in a
// newline. The text is taken as one_line() has it.
std::string wrapped(std::string_view first, std::string_view text, std::size_t width = 100);

}  // namespace lanescope::report
