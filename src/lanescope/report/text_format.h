// Numbers as text for people, and the width of text. Times are in ns, or in us where torch's
// doubles matter.
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
// The same with the units' proper names, for everything but torch's table: "1.50 GiB".
std::string format_size(std::int64_t bytes);
// 1234567 -> "1,234,567".
std::string format_count(std::uint64_t count);
std::string format_percent(double part, double whole);  // "12.34%"; "NaN" if whole is 0
// How many of `rows` are shown with --row-limit; negative: all.
std::size_t rows_shown(std::size_t rows, int row_limit);

// Length, beginning and end of text in code points, as Python counts them; a byte that is not UTF-8
// counts as one.
std::size_t text_length(std::string_view text);
std::string_view text_prefix(std::string_view text, std::size_t code_points);
std::string_view text_suffix(std::string_view text, std::size_t code_points);
// Padded with spaces to `width` code points; longer text stays as it is.
std::string pad_left(std::string_view text, std::size_t width);
std::string pad_right(std::string_view text, std::size_t width);
// At most `width` code points; longer text ends in "...". Not for torch's table, which cuts text in
// another way.
std::string shorten(std::string_view text, std::size_t width);
// For untrusted text of a trace. Characters that a terminal would act on (escape codes, line
// breaks, C1 controls, changes of the text's direction) become one '?' each.
std::string one_line(std::string_view text);

// Breaks one_line(text) at spaces into lines of at most `width` columns. The first line begins with
// `first`, the others are indented by its length. A number and its unit ("8 %", "16.7 ms") stay on
// one line. Ends in a newline.
std::string wrapped(std::string_view first, std::string_view text, std::size_t width = 100);

}  // namespace lanescope::report
