// The rank-by-step picture. A cell is as dark as its rank is late in that step; jobs with more ranks or
// steps than cells put neighbours into one, which shows the latest of them.
#include <fmt/format.h>

#include <algorithm>

#include "lanescope/report/explain_html_sections.h"
#include "lanescope/report/ranks_html.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/svg_writer.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using ranks::Job;

constexpr int kShades = 8;

// Places first, first + each, ...: one row or column for each.
struct HeatBlocks {
  HeatBlocks(std::size_t all, std::size_t most)
      : count(all), each((all + most - 1) / std::max<std::size_t>(1, most)) {}
  std::size_t count, each;
  std::size_t size() const { return each == 0 ? 0 : (count + each - 1) / each; }
  std::size_t first(std::size_t block) const { return block * each; }
  std::size_t end(std::size_t block) const { return std::min(count, (block + 1) * each); }
};

struct HeatCell {
  std::int64_t late_ns = -1;
  std::size_t step = 0, row = 0;  // where that is
};

HeatCell latest(const Job& job, const HeatBlocks& rows, std::size_t row, const HeatBlocks& columns,
                std::size_t column) {
  HeatCell cell;
  for (std::size_t step = columns.first(column); step < columns.end(column); ++step)
    for (std::size_t rank = rows.first(row); rank < rows.end(row); ++rank)
      if (job.steps[step].late_ns[rank] > cell.late_ns)
        cell = {job.steps[step].late_ns[rank], step, rank};
  return cell;
}

std::int64_t number_of(const Job& job, std::size_t row) { return job.numbers[job.compared[row]]; }

std::string row_name(const Job& job, const HeatBlocks& rows, std::size_t row) {
  const std::size_t first = rows.first(row), last = rows.end(row) - 1;
  return first == last ? fmt::format("rank {}", number_of(job, first))
                       : fmt::format("{} to {}", number_of(job, first), number_of(job, last));
}

std::string cell_tooltip(const Job& job, const HeatCell& cell) {
  const ranks::JobStep& step = job.steps[cell.step];
  const ranks::RankTimes& times = step.times[cell.row];
  return fmt::format("rank {}, step {}{}: {} late; own {} of {}, waits {}",
                     number_of(job, cell.row), step.number, step.steady ? "" : " (not compared)",
                     rounded_time(cell.late_ns), rounded_time(times.own_ns),
                     rounded_time(times.wall_ns), rounded_time(times.exposed_wait_ns));
}

std::string draw_heat(const Job& job, std::int64_t darkest, const std::string& id,
                      PictureWidth picture) {
  const bool is_wide = picture == PictureWidth::kWide;
  const HeatBlocks rows(job.compared.size(), kMostHeatRows),
      columns(job.steps.size(), is_wide ? kMostHeatColumns : kMostHeatColumns / 3);
  const double left = is_wide ? 92 : 74, top = 20;
  const double width = (picture_width(picture) - left - 4) / static_cast<double>(columns.size());
  const double cell_width = std::min(width, 60.0), height = rows.size() > 24 ? 11 : 18;
  SvgWriter svg(id, picture_width(picture), top + height * static_cast<double>(rows.size()) + 24,
                "How late each rank was in each step",
                fmt::format("{} ranks, {} steps; darkest: {}", job.compared.size(),
                            job.steps.size(), rounded_time(darkest)));
  svg.text(left, 12, "small", "step");
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const double y = top + height * static_cast<double>(row);
    if (height >= 18 || row % 2 == 0)
      svg.text(left - 6, y + height / 2 + 4, "small", row_name(job, rows, row),
               SvgWriter::Anchor::kEnd);
    for (std::size_t column = 0; column < columns.size(); ++column) {
      const HeatCell cell = latest(job, rows, row, columns, column);
      const double x = left + cell_width * static_cast<double>(column);
      const double share = static_cast<double>(cell.late_ns) / static_cast<double>(darkest);
      const auto shade = static_cast<int>(std::clamp(share, 0.0, 1.0) * kShades);
      svg.rect(x, y, cell_width - 1, height - 1, "rail", {});
      svg.rect(x, y, cell_width - 1, height - 1, fmt::format("heat h{}", shade),
               is_wide ? cell_tooltip(job, cell) : std::string());
    }
  }
  const std::size_t every = std::max<std::size_t>(
      1, static_cast<std::size_t>(34.0 / cell_width) + (cell_width < 34 ? 1 : 0));
  for (std::size_t column = 0; column < columns.size(); column += every) {
    const ranks::JobStep& step = job.steps[columns.first(column)];
    svg.text(left + cell_width * (static_cast<double>(column) + 0.5),
             top + height * static_cast<double>(rows.size()) + 14, "small",
             fmt::format(
                 "{}{}",
                 step.number >= 0 ? step.number : static_cast<std::int64_t>(columns.first(column)),
                 step.steady ? "" : "*"),
             SvgWriter::Anchor::kMiddle);
  }
  return svg.take();
}

// The shades, from not late to the darkest.
std::string scale_html(std::int64_t darkest) {
  SvgWriter svg("heat-scale", 200, 14, "Shades", "from not late to latest");
  for (int shade = 0; shade <= kShades; ++shade) {
    svg.rect(shade * 22, 0, 21, 13, "rail", {});
    svg.rect(shade * 22, 0, 21, 13, fmt::format("heat h{}", shade), {});
  }
  return fmt::format("<ul class=\"key\"><li>0</li><li>{}</li><li>{} late</li></ul>\n", svg.take(),
                     rounded_time(darkest));
}

}  // namespace

std::string heat_map_html(const Job& job, const ranks::JobVerdict& verdict) {
  if (job.steps.empty() || job.compared.empty()) return {};
  std::int64_t most = 0;
  bool has_unsteady = false;
  for (const ranks::JobStep& step : job.steps) {
    has_unsteady |= !step.steady;
    if (step.steady)
      for (const std::int64_t late : step.late_ns) most = std::max(most, late);
  }
  // Without anything late, small differences must not look dark.
  const std::int64_t darkest = std::max<std::int64_t>({1, most, verdict.threshold_ns});
  std::string html =
      "<section id=\"heat\">\n<h2>Who is late, and when</h2>\n<p>How much later each rank comes to "
      "a collective of a step than the median rank, at its worst one; or how much longer its own "
      "work takes.";
  if (verdict.threshold_ns > 0)
    html += fmt::format(" Less than {} is no verdict.", rounded_time(verdict.threshold_ns));
  if (has_unsteady) html += " Steps with * are not in the means: they are not like the others.";
  if (job.compared.size() > kMostHeatRows || job.steps.size() > kMostHeatColumns)
    html += " A cell of several ranks or steps shows the latest.";
  html += "</p>\n" + scale_html(darkest) +
          picture_html("heat-map", [&](const std::string& id, PictureWidth width) {
            return draw_heat(job, darkest, id, width);
          });
  return html + "</section>\n";
}

}  // namespace lanescope::report
