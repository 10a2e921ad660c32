// `lanescope ranks hang` as text, JSON, CSV and a page.
#pragma once
#include <string>

#include "lanescope/ranks/hang.h"

namespace lanescope::report {

// What was read, the findings with the likeliest cause first, and a line per rank (at most 32).
std::string ranks_hang_text(const ranks::HangReport& report);
// docs/formats/json_output.md, command "ranks hang".
std::string ranks_hang_json(const ranks::HangReport& report);
// A header and a line per rank: the call that it was in, or its last one. docs/cli.md names the columns.
std::string ranks_hang_csv(const ranks::HangReport& report);
// The findings and a row per rank (at most kMostHangRows, those of findings first) as one page that needs no
// other file, like that of ranks_html().
std::string ranks_hang_html(const ranks::HangReport& report);
inline constexpr std::size_t kMostHangRows = 256;

// Parts that text and page share. Of untrusted text, not escaped.
std::string hang_summary(const ranks::HangReport& report);
std::string hang_text_of(const ranks::HangFinding& finding);  // "Not called: collective 28 of ..."
// Where the rank at this place was at the end; "no call".
std::string hang_place_of(const ranks::HangReport& report, std::size_t index);
std::string no_hang_text(const ranks::HangReport& report);

}  // namespace lanescope::report
