// The beginning and the end of the pages of `lanescope ranks`.
#pragma once
#include <string>
#include <string_view>

namespace lanescope::report {

// Up to and with <body>; the page may load nothing and run nothing. `title` is escaped here.
std::string ranks_page_begin(std::string_view title);
// From </main> on. `made_by`: the command; `definitions`: the file that says what the page shows.
std::string ranks_page_end(std::string_view made_by, std::string_view definitions);

}  // namespace lanescope::report
