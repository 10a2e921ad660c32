// The collectives in which ranks waited longest: a table, and for the first ones who came when.
#include <fmt/format.h>

#include <algorithm>

#include "lanescope/report/explain_html_sections.h"
#include "lanescope/report/html_escape.h"
#include "lanescope/report/ranks_html.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/svg_writer.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using ranks::Job;
using ranks::JobCollective;

std::string kind_of(const Job& job, const JobCollective& collective) {
  return ranks::kind_text(job.matching.kinds[collective.kind]);
}

std::string group_of(const Job& job, const JobCollective& collective) {
  const auto& group = job.matching.groups[collective.group];
  return group.name.empty() ? "-" : group.name;
}

std::string number_text(std::int64_t number) {
  return number < 0 ? "-" : fmt::format("{}", number);
}

std::string draw_arrivals(const Job& job, const JobCollective& collective, const std::string& id,
                          PictureWidth picture) {
  const double left = 74, right = picture_width(picture) - 70, top = 6, height = 18;
  std::int64_t end = 1;
  for (std::uint32_t i = 0; i < collective.shown; ++i)
    end = std::max(end, collective.arrivals[i].start_ns + collective.arrivals[i].length_ns);
  const auto x = [&](std::int64_t ns) {
    return left + (right - left) * static_cast<double>(ns) / static_cast<double>(end);
  };
  SvgWriter svg(
      id, picture_width(picture), top + height * collective.shown + 22,
      "When each rank was in the collective",
      fmt::format("{} of {} ranks; the last one arrives {} after the first", collective.shown,
                  collective.ranks, rounded_time(collective.spread_ns)));
  for (std::uint32_t i = 0; i < collective.shown; ++i) {
    const ranks::Arrival& bar = collective.arrivals[i];
    const double y = top + height * i;
    const std::int64_t until = bar.start_ns + bar.length_ns;
    const std::int64_t all = std::clamp(collective.spread_ns, bar.start_ns, until);
    const std::string name = fmt::format("rank {}", job.numbers[bar.rank]);
    svg.text(left - 6, y + 13, "small", name, SvgWriter::Anchor::kEnd);
    svg.rect(left, y, right - left, height - 3, "rail");
    svg.rect(x(bar.start_ns), y, x(all) - x(bar.start_ns), height - 3, "k-wait",
             fmt::format("{} waits {}", name, rounded_time(all - bar.start_ns)));
    svg.rect(x(all), y, x(until) - x(all), height - 3, "k-comm",
             fmt::format("{}, all present: {}", name, rounded_time(until - all)));
    svg.text(right + 5, y + 13, "small", fmt::format("+{}", rounded_time(bar.start_ns)));
  }
  const double at = x(collective.spread_ns), bottom = top + height * collective.shown;
  svg.line(at, top - 4, at, bottom + 4, "axis");
  svg.text(at, bottom + 16, "small", "the last rank arrives",
           at > (left + right) / 2 ? SvgWriter::Anchor::kEnd : SvgWriter::Anchor::kStart);
  return svg.take();
}

std::string row_html(const Job& job, const JobCollective& collective) {
  return fmt::format(
      "<tr><td class=\"n\">{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
      "class=\"n\">{}</td>"
      "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
      number_text(collective.step), html_shortened(kind_of(job, collective), 60),
      html_shortened(group_of(job, collective), 24), number_text(collective.sequence),
      job.numbers[collective.last_rank], rounded_time(collective.spread_ns),
      rounded_time(collective.exposed_wait_ns), rounded_time(collective.together_ns));
}

}  // namespace

std::string critical_collectives_html(const Job& job) {
  if (job.critical.empty()) return {};
  std::string html =
      "<section id=\"collectives\">\n<h2>The collectives that ranks waited in longest</h2>\n"
      "<p>Waiting counts where the device computed nothing meanwhile; the time is the sum of all "
      "ranks.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Collectives\">"
      "<table><thead><tr><th scope=\"col\" class=\"n\">step</th><th scope=\"col\">collective</th>"
      "<th scope=\"col\" class=\"n\">group</th><th scope=\"col\" class=\"n\">number</th>"
      "<th scope=\"col\" class=\"n\">last rank</th><th scope=\"col\" class=\"n\">arrives after the "
      "first</th><th scope=\"col\" class=\"n\">exposed waits</th><th scope=\"col\" class=\"n\">all "
      "present</th></tr></thead><tbody>\n";
  for (const JobCollective& collective : job.critical) html += row_html(job, collective);
  html += "</tbody></table></div>\n";
  for (std::size_t i = 0; i < std::min(job.critical.size(), kMostCollectivePictures); ++i) {
    const JobCollective& collective = job.critical[i];
    html += fmt::format(
        "<h3>{}{}</h3>\n<p class=\"where\">Hatched: waits for the last rank. Full: all "
        "ranks are present.{} Clocks are aligned to +- {}.</p>\n",
        html_shortened(kind_of(job, collective), 60),
        collective.step < 0 ? "" : fmt::format(" in step {}", collective.step),
        collective.shown < collective.ranks
            ? fmt::format(" {} of {} ranks: the first and the last ones.", collective.shown,
                          collective.ranks)
            : "",
        rounded_time(collective.error_ns));
    html += picture_html(fmt::format("collective-{}", i),
                         [&](const std::string& id, PictureWidth width) {
                           return draw_arrivals(job, collective, id, width);
                         });
  }
  return html + "</section>\n";
}

}  // namespace lanescope::report
