#include "lanescope/report/ranks_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

#include "lanescope/base/sort_rows.h"
#include "lanescope/report/explain_html_sections.h"
#include "lanescope/report/html_escape.h"
#include "lanescope/report/ranks_page.h"
#include "lanescope/report/ranks_text.h"
#include "lanescope/report/ranks_words.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/svg_writer.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using ranks::Job;
using ranks::JobVerdict;
using ranks::RankTimes;

// Places in Job::compared: all, or the late ones of the verdict and those with extreme own times.
std::vector<std::size_t> chosen_rows(const Job& job, const JobVerdict& verdict, std::size_t most) {
  std::vector<std::size_t> rows(job.compared.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  if (rows.size() <= most) return rows;
  const auto is_late = [&](std::size_t row) {
    return std::find(verdict.ranks.begin(), verdict.ranks.end(), job.numbers[job.compared[row]]) !=
           verdict.ranks.end();
  };
  sort_rows(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(!is_late(a), -job.times[a].own_ns) <
           std::pair(!is_late(b), -job.times[b].own_ns);
  });
  // The last half are those with the shortest own time.
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(most / 2),
             rows.end() - static_cast<std::ptrdiff_t>(most - most / 2));
  std::sort(rows.begin(), rows.end());
  return rows;
}

struct RankPart {
  const char* name;
  const char* css_class;
  std::int64_t (*of)(const RankTimes&);
};
constexpr RankPart kRankParts[] = {
    {"compute", "k-compute", [](const RankTimes& t) { return t.compute_ns; }},
    {"idle", "k-idle", [](const RankTimes& t) { return t.idle_ns(); }},
    {"copies", "k-copy", [](const RankTimes& t) { return t.copy_ns; }},
    {"transfer", "k-comm", [](const RankTimes& t) { return t.exposed_transfer_ns(); }},
    {"waits for late ranks", "k-wait", [](const RankTimes& t) { return t.exposed_wait_ns; }}};

std::string draw_bars(const Job& job, const std::vector<std::size_t>& rows, const std::string& id,
                      PictureWidth picture) {
  const double left = 74, right = picture_width(picture) - 70, height = 20;
  std::int64_t longest = 1;
  for (const std::size_t row : rows) longest = std::max(longest, job.times[row].wall_ns);
  SvgWriter svg(id, picture_width(picture), height * static_cast<double>(rows.size()) + 4,
                "What each rank does in a step", "means of the steps that are compared");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RankTimes& times = job.times[rows[i]];
    const double y = 2 + height * static_cast<double>(i);
    const std::string name = fmt::format("rank {}", job.numbers[job.compared[rows[i]]]);
    svg.text(left - 6, y + 13, "small", name, SvgWriter::Anchor::kEnd);
    double x = left;
    for (const RankPart& part : kRankParts) {
      const double width =
          (right - left) * static_cast<double>(part.of(times)) / static_cast<double>(longest);
      if (width > 0)
        svg.rect(x, y, width, height - 4, part.css_class,
                 fmt::format("{}: {} {}", name, part.name, rounded_time(part.of(times))));
      x += std::max(0.0, width);
    }
    svg.text(right + 5, y + 13, "small", rounded_time(times.wall_ns));
  }
  return svg.take();
}

std::string bars_key() {
  std::string html = "<ul class=\"key\">";
  for (std::size_t i = 0; i < std::size(kRankParts); ++i) {
    SvgWriter svg(fmt::format("key-{}", i), 18, 12, kRankParts[i].name, "");
    svg.rect(0, 0, 18, 12, kRankParts[i].css_class);
    html += fmt::format("<li>{} {}</li>", svg.take(), kRankParts[i].name);
  }
  return html + "</ul>\n";
}

std::string clock_html(const Job& job, std::size_t rank) {
  const ranks::RankClock& clock = job.clocks[rank];
  if (rank == 0) return "reference";
  if (!clock.known || clock.contradicts) return "unknown";
  return fmt::format("{}{} &#177; {}", clock.offset_ns < 0 ? "-" : "+",
                     rounded_time(std::abs(clock.offset_ns)), rounded_time(clock.error_ns));
}

std::string ranks_table_html(const Job& job, const JobVerdict& verdict) {
  const std::vector<std::size_t> rows = chosen_rows(job, verdict, kMostRankRows);
  if (rows.empty()) return {};
  std::string html =
      "<section id=\"ranks\">\n<h2>Rank by rank</h2>\n<p>Means of a step. own = compute + idle + "
      "copies; step = own + transfer + waits. Where waits are unknown, transfer includes them.";
  if (rows.size() < job.compared.size())
    html += fmt::format(" {} of {} ranks; <code>lanescope ranks --csv</code> has all.", rows.size(),
                        job.compared.size());
  html +=
      "</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Ranks\"><table><thead>"
      "<tr><th scope=\"col\">rank</th>";
  for (const char* title : {"step", "own", "compute", "idle", "copies", "transfer", "waits",
                            "hidden", "last arrivals", "clock"})
    html += fmt::format("<th scope=\"col\" class=\"n\">{}</th>", title);
  html += "</tr></thead><tbody>\n";
  for (const std::size_t row : rows) {
    const std::uint32_t rank = job.compared[row];
    const RankTimes& times = job.times[row];
    const bool is_late = std::find(verdict.ranks.begin(), verdict.ranks.end(), job.numbers[rank]) !=
                         verdict.ranks.end();
    html += fmt::format("<tr{}><th scope=\"row\">{}<small>{}</small></th>",
                        is_late ? " class=\"sum\"" : "", job.numbers[rank],
                        html_shortened(job.ranks[rank].file, 100));
    for (const std::int64_t ns : {times.wall_ns, times.own_ns, times.compute_ns, times.idle_ns(),
                                  times.copy_ns, times.exposed_transfer_ns()})
      html += fmt::format("<td class=\"n\">{}</td>", rounded_time(ns));
    const bool is_known = times.exposed_ns == 0 || job.knows_waits(rank);
    html += fmt::format("<td class=\"n\">{}</td><td class=\"n\">{}</td>",
                        is_known ? rounded_time(times.exposed_wait_ns) : "unknown",
                        rounded_time(times.hidden_ns));
    html += fmt::format("<td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                        format_count(job.last_arrivals[rank]), clock_html(job, rank));
  }
  return html + "</tbody></table></div>\n</section>\n";
}

std::string median_html(const Job& job, const JobVerdict& verdict, const RankPart& part,
                        bool late) {
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < job.compared.size(); ++i) {
    const bool is_late = std::find(verdict.ranks.begin(), verdict.ranks.end(),
                                   job.numbers[job.compared[i]]) != verdict.ranks.end();
    if (is_late == late) values.push_back(part.of(job.times[i]));
  }
  if (values.empty()) return "-";
  std::sort(values.begin(), values.end());
  return rounded_time(values[(values.size() - 1) / 2]);
}

// What the late ranks do longer than the others.
std::string evidence_html(const Job& job, const JobVerdict& verdict) {
  if (verdict.kind != ranks::VerdictKind::kStraggler && verdict.kind != ranks::VerdictKind::kUneven)
    return {};
  std::string html =
      "<section id=\"evidence\">\n<h2>What the late ranks do longer</h2>\n<div class=\"scroll\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"Late ranks and others\"><table><thead><tr><th "
      "scope=\"col\">a step</th><th scope=\"col\" class=\"n\">late (median)</th><th scope=\"col\" "
      "class=\"n\">others (median)</th></tr></thead><tbody>\n";
  for (const RankPart& part : kRankParts)
    html += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "</tr>\n",
        part.name, median_html(job, verdict, part, true), median_html(job, verdict, part, false));
  html += "</tbody></table></div>\n";
  if (verdict.host_work_ns > 0)
    html += fmt::format(
        "<p>The CPU of the late rank needs {} for the operators of a step, the others' CPUs "
        "{}.</p>\n",
        rounded_time(verdict.host_work_ns), rounded_time(verdict.others_work_ns));
  else if (!verdict.host_part.empty())
    html += fmt::format(
        "<p>The CPU of the late rank spends {} a step more than the others in "
        "<code>{}</code>{}.</p>\n",
        rounded_time(verdict.host_part_ns), html_shortened(verdict.host_part, 120),
        verdict.host_part_is_of_step ? "" : " while its device waits");
  if (verdict.profiler_ns > 0)
    html += fmt::format("<p>The profiler itself may have cost that CPU up to {} a step.</p>\n",
                        rounded_time(verdict.profiler_ns));
  return html + "</section>\n";
}

std::string rates_html(const Job& job) {
  std::string rows;
  std::size_t count = 0;
  for (const auto& rate : job.rates) {
    if (rate.bus_bandwidth <= 0 || ++count > kMostRankRows) continue;
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{:.1f} GB/s</td><td class=\"n\">{:.1f} GB/s</td><td "
        "class=\"n\">{}</td></tr>\n",
        html_shortened(rate.kind, 60), html_shortened(job.matching.groups[rate.group].name, 24),
        format_count(rate.count), rounded_time(rate.together_ns), rate.algorithm_bandwidth / 1e9,
        rate.bus_bandwidth / 1e9, rounded_time(rate.wait_ns));
  }
  if (rows.empty()) return {};
  return "<section id=\"rates\">\n<h2>How fast the network is</h2>\n<p>Only of the time in which "
         "all ranks of a group are present: waiting for a late rank is no slow network. "
         "Medians.</p>\n"
         "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
         "aria-label=\"Bandwidth\"><table><thead>"
         "<tr><th scope=\"col\">collective</th><th scope=\"col\">group</th><th scope=\"col\" "
         "class=\"n\">calls</th><th scope=\"col\" class=\"n\">all present</th><th scope=\"col\" "
         "class=\"n\">algorithm</th><th scope=\"col\" class=\"n\">bus</th><th scope=\"col\" "
         "class=\"n\">ranks arrive within</th></tr></thead><tbody>\n" +
         rows + "</tbody></table></div>\n</section>\n";
}

std::string groups_html(const Job& job) {
  if (job.groups.size() < 2) return {};
  std::string html =
      "<section id=\"purposes\">\n<h2>Exposed communication by purpose of the groups</h2>\n<p>Of a "
      "step, mean of all ranks. Calls at the same time on several streams count each.</p>\n<div "
      "class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Communication\"><table><thead><tr><th scope=\"col\">groups</th>";
  for (const char* title : {"calls", "transfer", "waits for late ranks"})
    html += fmt::format("<th scope=\"col\" class=\"n\">{}</th>", title);
  html += "</tr></thead><tbody>\n";
  for (const ranks::GroupTimes& groups : job.groups)
    html += fmt::format(
        "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td></tr>\n",
        html_escaped(ranks::groups_name(groups)), format_count(groups.calls),
        rounded_time(groups.transfer_ns()), rounded_time(groups.exposed_wait_ns));
  return html + "</tbody></table></div>\n</section>\n";
}

std::string header_html(const Job& job, const JobVerdict& verdict) {
  const std::vector<std::string> sentences = verdict_sentences(verdict);
  std::string html = "<header>\n<h1>" + html_escaped(sentences.front()) +
                     "</h1>\n<p class=\"meta\">" + html_escaped(job_sentence(job)) + "</p>\n";
  for (const ranks::Remark& remark : job.remarks)
    html += "<p class=\"damage\">" + html_shortened(remark.text, 400) + "</p>\n";
  html += "</header>\n<main>\n";
  for (std::size_t i = 1; i < sentences.size(); ++i)
    html += "<p>" + html_escaped(sentences[i]) + "</p>\n";
  if (verdict.notes.empty()) return html;
  html += "<ul>";
  for (const ranks::JobNote& note : verdict.notes)
    html += "<li>" + html_escaped(note.text) + "</li>";
  return html + "</ul>\n";
}

}  // namespace

std::string rank_bars_html(const Job& job) {
  const std::vector<std::size_t> rows = chosen_rows(job, {}, kMostRankBars);
  if (rows.empty()) return {};
  std::string html = "<section id=\"bars\">\n<h2>What each rank does in a step</h2>\n";
  if (rows.size() < job.compared.size())
    html += "<p>The ranks with the longest and the shortest own time.</p>\n";
  return html + bars_key() +
         picture_html("rank-bars",
                      [&](const std::string& id, PictureWidth width) {
                        return draw_bars(job, rows, id, width);
                      }) +
         "</section>\n";
}

std::string ranks_html(const Job& job, const JobVerdict& verdict) {
  std::string html = ranks_page_begin(fmt::format("{} ranks, compared", job.ranks.size()));
  html += svg_definitions();
  html += header_html(job, verdict) + heat_map_html(job, verdict) + rank_bars_html(job) +
          evidence_html(job, verdict) + critical_collectives_html(job) +
          ranks_table_html(job, verdict) + groups_html(job) + rates_html(job);
  return html + ranks_page_end("lanescope ranks --html", "docs/definitions/ranks.md");
}

}  // namespace lanescope::report
