// The answer of `lanescope ranks hang` as a page.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "lanescope/report/html_escape.h"
#include "lanescope/report/ranks_hang.h"
#include "lanescope/report/ranks_page.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using ranks::HangKind;
using ranks::HangReport;

constexpr std::size_t kMostItems = 100, kMostLetters = 600;

std::string headline(const HangReport& report) {
  if (report.findings.empty()) return "No sign of a hang";
  switch (report.findings.front().kind) {
    case HangKind::kMismatch:
      return "Ranks call different collectives at one place";
    case HangKind::kNotCalled:
      return "Some ranks wait in a collective that others have not called";
    case HangKind::kNotPaired:
      return "A send or receive waits for its other side";
    case HangKind::kNoDump:
      return "Ranks have no dump";
    case HangKind::kNotEnded:
      return "All ranks are in a collective that has not ended";
  }
  return {};
}

std::string list_html(const std::vector<std::string>& items, const char* what) {
  std::string html = "<ul>";
  for (std::size_t i = 0; i < items.size() && i < kMostItems; ++i)
    html += "<li>" + html_shortened(items[i], kMostLetters) + "</li>";
  if (items.size() > kMostItems)
    html += fmt::format("<li>and {} more {}; <code>--json</code> has all</li>",
                        items.size() - kMostItems, what);
  return html + "</ul>\n";
}

// Places in report.ranks: those that a finding names first.
std::vector<std::size_t> chosen_rows(const HangReport& report,
                                     const std::set<std::int64_t>& named) {
  std::vector<std::size_t> rows(report.ranks.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  if (rows.size() <= kMostHangRows) return rows;
  std::stable_partition(rows.begin(), rows.end(),
                        [&](std::size_t row) { return named.contains(report.ranks[row].rank); });
  rows.resize(kMostHangRows);
  return rows;
}

std::string row_html(const HangReport& report, std::size_t row, bool is_named) {
  const ranks::HangRank& rank = report.ranks[row];
  std::string html =
      fmt::format("<tr{}><th scope=\"row\">{}<small>{}</small></th>",
                  is_named ? " class=\"sum\"" : "", rank.rank, html_shortened(rank.file, 100));
  html += fmt::format("<td>{}</td>", html_shortened(hang_place_of(report, row), 200));
  return html + fmt::format("<td class=\"n\">{}</td></tr>\n", format_count(rank.calls));
}

std::string ranks_section(const HangReport& report) {
  std::set<std::int64_t> named;
  for (const ranks::HangFinding& finding : report.findings)
    if (finding.kind != HangKind::kNotEnded)
      named.insert(finding.ranks.begin(), finding.ranks.end());
  const std::vector<std::size_t> rows = chosen_rows(report, named);
  std::string html = "<section id=\"ranks\">\n<h2>Where each rank was at the end</h2>\n<p>";
  if (!named.empty()) html += "Ranks that a finding names are marked. ";
  if (rows.size() < report.ranks.size())
    html +=
        fmt::format("{} of {} ranks, those first; <code>lanescope ranks hang --csv</code> has all.",
                    rows.size(), report.ranks.size());
  html +=
      "</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Ranks\"><table><thead>"
      "<tr><th scope=\"col\">rank</th><th scope=\"col\">its call, with its number in the "
      "group</th><th scope=\"col\" class=\"n\">calls recorded</th></tr></thead><tbody>\n";
  for (const std::size_t row : rows)
    html += row_html(report, row, named.contains(report.ranks[row].rank));
  return html + "</tbody></table></div>\n</section>\n";
}

}  // namespace

std::string ranks_hang_html(const HangReport& report) {
  std::string html = ranks_page_begin(fmt::format("{} rank{}, why they hang", report.ranks.size(),
                                                  report.ranks.size() == 1 ? "" : "s"));
  html += "<header>\n<h1>" + headline(report) + "</h1>\n<p class=\"meta\">" +
          html_escaped(hang_summary(report)) + "</p>\n</header>\n<main>\n";
  std::vector<std::string> findings;
  for (const ranks::HangFinding& finding : report.findings)
    findings.push_back(hang_text_of(finding));
  if (findings.empty())
    html += "<p>" + html_escaped(no_hang_text(report)) + "</p>\n";
  else
    html += "<section id=\"findings\">\n<h2>What was found</h2>\n" +
            list_html(findings, "findings") + "</section>\n";
  html += ranks_section(report);
  if (!report.remarks.empty())
    html += "<section id=\"remarks\">\n<h2>Files that do not count</h2>\n" +
            list_html(report.remarks, "files") + "</section>\n";
  return html + ranks_page_end("lanescope ranks hang --html", "docs/formats/flight_recorder.md");
}

}  // namespace lanescope::report
