#include "lanescope/report/explain_html.h"

#include <fmt/format.h>

#include <algorithm>

#include "lanescope/analysis/trace_info.h"
#include "lanescope/report/explain_html_sections.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/html_escape.h"
#include "lanescope/report/svg_writer.h"
#include "lanescope/report/text_format.h"
#include "lanescope/report/thinning_text.h"

namespace lanescope::report {
namespace {

using explain::Explanation;
using explain::Facts;

constexpr std::size_t kTitleWidth = 120, kMostGpuNames = 4;

// "; 4 x NVIDIA H200".
std::string devices_html(const analysis::TraceInfo& info) {
  std::vector<std::pair<std::string, std::size_t>> kinds;
  for (const auto& device : info.devices) {
    const auto same = std::find_if(kinds.begin(), kinds.end(),
                                   [&](const auto& kind) { return kind.first == device.name; });
    if (same != kinds.end())
      ++same->second;
    else if (kinds.size() <= kMostGpuNames)
      kinds.emplace_back(device.name, 1);
  }
  std::string html;
  for (std::size_t i = 0; i < std::min(kinds.size(), kMostGpuNames); ++i)
    html += fmt::format("{}{}{}", i == 0 ? "; " : ", ",
                        kinds[i].second > 1 ? fmt::format("{} x ", kinds[i].second) : "",
                        html_shortened(kinds[i].first, 60));
  return kinds.size() > kMostGpuNames ? html + " and others" : html;
}

// Without marked steps, the page says "the recording": which part of it that is.
std::string recording_html(const Facts& facts, std::int64_t window_ns) {
  const std::int64_t wall_ns = facts.steady_wall_ns();
  if (facts.steps.marked || wall_ns == 0 || wall_ns == window_ns) return {};
  return fmt::format("; &quot;the recording&quot; below is the {} of it from {}",
                     format_time_ns(wall_ns),
                     facts.main_device ? "the first launch to the end of the last GPU work"
                                       : "the first operator to the end of the last");
}

// The file, the machine that it was recorded on, and what was lost or left out.
std::string meta_html(const Facts& facts, const PageOptions& options) {
  const Trace& trace = *facts.trace;
  const analysis::TraceInfo info = analysis::compute_trace_info(trace);
  std::string html = "<p class=\"meta\">";
  if (!options.trace_name.empty())
    html += fmt::format("<code>{}</code>: ", html_shortened(options.trace_name, kTitleWidth));
  html += fmt::format("{} recorded, {} events, written by {}", format_time_ns(info.window_ns),
                      format_count(info.event_count), html_shortened(info.producer, kTitleWidth));
  html += devices_html(info);
  if (info.rank)
    html += fmt::format("; rank {}{}", *info.rank,
                        info.world_size ? fmt::format(" of {}", *info.world_size) : "");
  html += recording_html(facts, info.window_ns) + ".</p>\n";
  if (info.thinning)
    html += fmt::format("<p class=\"damage\">Recorded with a budget: {}.</p>\n",
                        html_escaped(thinning_text(*info.thinning)));
  std::uint64_t lost = 0, repaired = 0;
  for (const auto& issue : info.issues) {
    // Kineto cuts arrows at the edges of nearly every window, so this is not damage.
    if (issue.issue == ImportIssue::kOrphanFlow) continue;
    const Severity severity = import_issue_info(issue.issue).severity;
    if (severity == Severity::kLost) lost += issue.count;
    if (severity == Severity::kRepaired) repaired += issue.count;
  }
  if (lost + repaired > 0)
    html += fmt::format(
        "<p class=\"damage\">The file is damaged: {} places lost, {} repaired. "
        "<code>lanescope info</code> lists them.</p>\n",
        format_count(lost), format_count(repaired));
  return html;
}

constexpr char kNavigation[] =
    "<nav aria-label=\"Sections\"><ul>{}<li><a href=\"#findings\">Findings</a></li>{}{}"
    "<li><a href=\"#legend\">How to read this page</a></li></ul></nav>\n";

}  // namespace

std::string picture_html(
    const std::string& id,
    const std::function<std::string(const std::string& id, PictureWidth width)>& draw) {
  const std::string wide = draw(id, PictureWidth::kWide);
  if (wide.empty()) return {};
  return "<div class=\"picture wide\">\n" + wide + "</div>\n<div class=\"picture narrow\">\n" +
         draw(id + "-n", PictureWidth::kNarrow) + "</div>\n";
}

std::string explanation_html(const Facts& facts, const Explanation& explanation,
                             const PageOptions& options) {
  const std::string wall = wall_section_html(facts);
  const std::string table = key_averages_section_html(*facts.trace);
  const std::string asked = explanation.is_answer ? asked_rules_section_html(explanation)
                                                  : other_rules_section_html(explanation);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
      "<meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'{}'; script-src '{}'; base-uri 'none'; form-action 'none'\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
      "<meta name=\"referrer\" content=\"no-referrer\"/>\n<title>{}</title>\n<style>{}</style>\n"
      "</head>\n<body>\n",
      kPageStyleHash, kPageScriptHash,
      options.trace_name.empty() ? "What bounds a step"
                                 : html_shortened(options.trace_name, kTitleWidth) + ", explained",
      kPageStyle);
  html += svg_definitions();
  html += "<header>\n<h1>" + sentence_html(explanation.headline) + "</h1>\n" +
          meta_html(facts, options);
  const std::string first =
      explanation.is_answer ? "" : do_first_section_html(facts, explanation, options.has_links);
  if (options.has_links) {
    const std::string to_wall =
        wall.empty() ? "" : "<li><a href=\"#wall\">Where a step's time goes</a></li>";
    const std::string to_first = first.empty() ? "" : "<li><a href=\"#first\">What to do</a></li>";
    const std::string to_table =
        table.empty() ? "" : "<li><a href=\"#table\">Time by name</a></li>";
    if (explanation.is_answer)
      html += fmt::format(kNavigation, "<li><a href=\"#asked\">What you asked</a></li>", to_wall,
                          to_table);
    else
      html +=
          fmt::format(kNavigation, to_wall + to_first, to_table,
                      asked.empty() ? "" : "<li><a href=\"#asked\">What else was checked</a></li>");
  }
  const std::string findings = first + findings_section_html(facts, explanation);
  html +=
      "</header>\n<main>\n" +
      (explanation.is_answer ? asked + findings + wall + table : wall + findings + table + asked) +
      legend_section_html();
  html += fmt::format(
      "</main>\n<footer class=\"remark\"><p>Made by <code>lanescope explain --html</code> from "
      "this one file. The page loads nothing and sends nothing.</p></footer>\n"
      "<script>{}</script>\n</body>\n</html>\n",
      kPageScript);
  return html;
}

}  // namespace lanescope::report
