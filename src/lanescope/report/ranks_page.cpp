#include "lanescope/report/ranks_page.h"

#include <fmt/format.h>

#include "lanescope/report/explain_html_sections.h"
#include "lanescope/report/html_escape.h"

namespace lanescope::report {

std::string ranks_page_begin(std::string_view title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
      "<meta charset=\"utf-8\"/>\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src '{}'; base-uri 'none'; form-action 'none'\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
      "<meta name=\"referrer\" content=\"no-referrer\"/>\n<title>{}</title>\n"
      "<style>{}</style>\n</head>\n<body>\n",
      kPageStyleHash, html_escaped(title), kPageStyle);
}

std::string ranks_page_end(std::string_view made_by, std::string_view definitions) {
  return fmt::format(
      "</main>\n<footer class=\"remark\"><p>Made by <code>{}</code>. What the numbers mean: {}. "
      "The page loads nothing and sends nothing.</p></footer>\n</body>\n</html>\n",
      made_by, definitions);
}

}  // namespace lanescope::report
