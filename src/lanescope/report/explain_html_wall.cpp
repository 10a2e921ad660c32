// The wall of a step on the page.
#include <fmt/format.h>

#include <algorithm>

#include "lanescope/base/sort_rows.h"
#include "lanescope/report/explain_html.h"
#include "lanescope/report/explain_html_sections.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/html_escape.h"
#include "lanescope/report/svg_wall_bars.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using analysis::IdleCause;
using explain::Facts;
using explain::WallTimes;

std::string step_name(const Facts& facts, std::size_t index) {
  const auto& number = facts.steps.steps[index].number;
  return number ? fmt::format("step {}", *number) : "the recording";
}

bool is_left_out(const Facts& facts, std::size_t index) {
  const auto reason = facts.selection.reason(index);
  return reason == analysis::LeftOutReason::kLong || reason == analysis::LeftOutReason::kHeldUp ||
         reason == analysis::LeftOutReason::kCut || reason == analysis::LeftOutReason::kInTurn;
}

WallTimes mean_of(const Facts& facts) {
  WallTimes mean = facts.wall;
  auto divide = [&](std::int64_t& value) { value = facts.per_step(value); };
  divide(mean.partition.wall_ns);
  divide(mean.partition.compute_ns);
  divide(mean.partition.exposed_communication_ns);
  divide(mean.partition.exposed_copy_ns);
  divide(mean.partition.idle_ns);
  for (std::int64_t& idle : mean.idle) divide(idle);
  return mean;
}

// Names and walls of the columns: the mean of the steady steps, the first and the last step.
struct Column {
  std::string name;
  WallTimes times;
};

std::vector<Column> columns_of(const Facts& facts) {
  const auto& walls = facts.device().walls;
  std::vector<Column> columns;
  const bool one = facts.selection.steady.size() == 1;
  columns.push_back({one ? step_name(facts, facts.selection.steady.front())
                         : fmt::format("mean of {} steady steps", facts.selection.steady.size()),
                     mean_of(facts)});
  if (facts.selection.one_chosen || walls.size() < 2) return columns;
  columns.push_back({fmt::format("first: {}", step_name(facts, 0)), walls.front()});
  if (!one)
    columns.push_back({fmt::format("last: {}{}", step_name(facts, walls.size() - 1),
                                   is_left_out(facts, walls.size() - 1) ? " (left out)" : ""),
                       walls.back()});
  return columns;
}

std::string cell(std::int64_t ns, std::int64_t wall_ns) {
  return fmt::format("<td class=\"n\">{} ns</td><td class=\"n\">{}</td>",
                     format_count(static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0))),
                     format_percent(static_cast<double>(ns), static_cast<double>(wall_ns)));
}

// One row per part, with the idle causes below idle. Each column adds up to its wall.
std::string exact_table(const std::vector<Column>& columns) {
  std::string html =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"The wall in "
      "nanoseconds\"><table><caption>The same in nanoseconds. Compute, communication, copies and "
      "idle add up to the wall; the causes add up to idle. Means are rounded down.</caption>"
      "<thead><tr><th scope=\"col\">part</th>";
  for (const Column& column : columns)
    html += fmt::format("<th scope=\"colgroup\" colspan=\"2\">{}</th>", html_escaped(column.name));
  html += "</tr></thead><tbody>\n";
  const auto row = [&](std::string_view name, std::string_view css_class, auto part) {
    if (std::all_of(columns.begin(), columns.end(),
                    [&](const Column& column) { return part(column.times) == 0; }))
      return;
    html += fmt::format("<tr class=\"{}\"><th scope=\"row\">{}</th>", css_class, name);
    for (const Column& column : columns)
      html += cell(part(column.times), column.times.partition.wall_ns);
    html += "</tr>\n";
  };
  row("compute", "part", [](const WallTimes& t) { return t.partition.compute_ns; });
  row("communication alone", "part",
      [](const WallTimes& t) { return t.partition.exposed_communication_ns; });
  row("copies and memsets alone", "part",
      [](const WallTimes& t) { return t.partition.exposed_copy_ns; });
  row("idle", "part", [](const WallTimes& t) { return t.partition.idle_ns; });
  for (std::size_t i = 0; i < analysis::kIdleCauseCount; ++i)
    row(idle_cause_text(static_cast<IdleCause>(i)), "cause",
        [&](const WallTimes& t) { return t.idle[i]; });
  row("wall", "sum", [](const WallTimes& t) { return t.partition.wall_ns; });
  return html + "</tbody></table></div>\n";
}

// Which steps are written in full: the first and last three, and the longest of the others.
std::vector<std::size_t> exact_steps(const std::vector<WallTimes>& walls) {
  std::vector<std::size_t> order(walls.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (walls.size() <= kMostExactSteps) return order;
  const auto is_outer = [&](std::size_t i) { return i < 3 || i + 3 >= walls.size(); };
  sort_rows(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return is_outer(a) != is_outer(b) ? is_outer(a)
                                      : walls[a].partition.wall_ns > walls[b].partition.wall_ns;
  });
  order.resize(kMostExactSteps);
  std::sort(order.begin(), order.end());
  return order;
}

std::string every_step(const Facts& facts) {
  const auto& walls = facts.device().walls;
  if (walls.size() < 2) return {};
  const auto columns = step_columns(walls, facts.steps.marked);
  std::size_t widest = 1;
  for (const StepColumn& column : columns) widest = std::max(widest, column.count);
  std::string html = "<h3>Every step</h3>\n<p>";
  html += widest == 1 ? "One column a step, in order of time."
                      : fmt::format(
                            "{} steps in order of time: a column is the mean of up to {} "
                            "neighbours, the thin line above it reaches to the longest of them.",
                            format_count(walls.size()), widest);
  html +=
      " The first step and the last one are apart; a column higher than the scale is "
      "drawn compressed, with its length above it.</p>\n";
  std::vector<std::string> labels;
  for (const StepColumn& column : columns) labels.push_back(step_name(facts, column.first));
  html += picture_html("steps", [&](const std::string& id, PictureWidth width) {
    return step_columns_svg(id, columns, labels, width);
  });
  const auto shown = exact_steps(walls);
  html += fmt::format("<details><summary>The steps in nanoseconds{}</summary>",
                      shown.size() < walls.size()
                          ? fmt::format(": the first and last three, and the longest {} of the "
                                        "others; {} are left out (lanescope explain --json has "
                                        "all)",
                                        shown.size() - 6, format_count(walls.size() - shown.size()))
                          : std::string());
  html +=
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Steps in "
      "nanoseconds\"><table><thead><tr><th scope=\"col\">step</th>";
  for (const char* name : {"wall", "compute", "communication alone", "copies alone", "idle"})
    html += fmt::format("<th scope=\"col\" class=\"n\">{}, ns</th>", name);
  html += "</tr></thead><tbody>\n";
  for (const std::size_t i : shown) {
    const auto& part = walls[i].partition;
    html += fmt::format("<tr><th scope=\"row\">{}{}</th>", step_name(facts, i),
                        i < facts.steps.start_up_count ? " (start-up)"
                        : is_left_out(facts, i)        ? " (left out)"
                                                       : "");
    for (const std::int64_t ns : {part.wall_ns, part.compute_ns, part.exposed_communication_ns,
                                  part.exposed_copy_ns, part.idle_ns})
      html += fmt::format("<td class=\"n\">{}</td>",
                          format_count(static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0))));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div></details>\n";
}

std::string other_devices(const Facts& facts) {
  constexpr std::size_t kMostDevices = 32;
  std::string html;
  for (std::size_t i = 0; i < facts.devices.size() && i < kMostDevices; ++i) {
    if (i == *facts.main_device) continue;
    WallTimes sum;
    for (const std::size_t index : facts.selection.steady) sum += facts.devices[i].walls[index];
    html += fmt::format("<li>device {}: busy {} of {}</li>", facts.devices[i].timeline.device,
                        format_time_ns(facts.per_step(sum.partition.busy_ns())),
                        format_time_ns(facts.per_step(sum.partition.wall_ns)));
  }
  if (html.empty()) return {};
  if (facts.devices.size() > kMostDevices)
    html += fmt::format("<li>{} more devices</li>", facts.devices.size() - kMostDevices);
  return fmt::format("<p>Other devices, {}; the findings look at device {}:</p><ul>{}</ul>\n",
                     facts.steps.marked ? "per step" : "in the recording",
                     facts.device().timeline.device, html);
}

std::string lengths_text(const Facts& facts) {
  if (facts.selection.steady.size() < 2) return {};
  const auto statistics = analysis::step_statistics(facts.steady_lengths_ns());
  return fmt::format(
      "<p>Steady steps: shortest <b>{}</b>, median <b>{}</b>, longest <b>{}</b>{}.</p>\n",
      format_time_ns(statistics.shortest_ns), format_time_ns(statistics.median_ns),
      format_time_ns(statistics.longest_ns),
      statistics.slow.empty() ? "" : "; slow: " + slow_steps_text(facts, statistics.slow));
}

std::string section_start(const Facts& facts) {
  return fmt::format(
      "<section id=\"wall\">\n<h2>{}</h2>\n<p>Every moment from the step's "
      "start to its end belongs to one part. Shown: {}.</p>\n",
      html_escaped(wall_title_text(facts)), html_escaped(steady_steps_text(facts)));
}

// Without GPU work: what the thread of the steps did, one row with a bar per part.
std::string cpu_parts(const Facts& facts) {
  constexpr double kBarWidth = 160;
  const std::int64_t wall_ns = facts.cpu_wall.wall_ns;
  std::string html =
      "<table><caption>The parts add up to the wall. Means are rounded down.</caption>"
      "<thead><tr><th scope=\"col\">part</th><td></td><th scope=\"colgroup\" colspan=\"2\">";
  html += facts.steps.marked ? "per step" : "in the recording";
  html += "</th></tr></thead><tbody>\n";
  for (std::size_t i = 0; i < analysis::kHostPartCount; ++i) {
    const std::int64_t part_ns = facts.cpu_wall.part_ns[i];
    if (part_ns == 0) continue;
    html += fmt::format(
        "<tr class=\"part\"><th scope=\"row\">{}</th><td><svg width=\"{}\" height=\"14\" "
        "aria-hidden=\"true\"><rect x=\"0\" y=\"1\" width=\"{:.1f}\" height=\"12\" "
        "class=\"{}\"/></svg></td>{}</tr>\n",
        host_part_text(static_cast<analysis::HostPart>(i)), static_cast<int>(kBarWidth),
        kBarWidth * static_cast<double>(part_ns) / static_cast<double>(wall_ns),
        wall_part_class(static_cast<analysis::HostPart>(i) == analysis::HostPart::kOutside
                            ? WallPart::kOtherIdle
                            : WallPart::kCompute),
        cell(facts.per_step(part_ns), facts.per_step(wall_ns)));
  }
  return html +
         fmt::format("<tr class=\"sum\"><th scope=\"row\">wall</th><td></td>{}</tr>\n",
                     cell(facts.per_step(wall_ns), facts.per_step(wall_ns))) +
         "</tbody></table>\n";
}

}  // namespace

std::string wall_legend_html() {
  std::string html = "<ul class=\"key\">";
  for (std::size_t i = 0; i < kWallPartCount; ++i) {
    const auto part = static_cast<WallPart>(i);
    html += fmt::format(
        "<li><svg width=\"26\" height=\"14\" aria-hidden=\"true\"><rect x=\"1\" y=\"1\" "
        "width=\"24\" height=\"12\" class=\"{}\"/></svg> {}</li>",
        wall_part_class(part), wall_part_text(part));
  }
  return html + "</ul>\n";
}

std::string wall_section_html(const Facts& facts) {
  if (facts.steady_wall_ns() == 0) return {};
  if (!facts.main_device)
    return section_start(facts) + cpu_parts(facts) + lengths_text(facts) + "</section>\n";
  const auto columns = columns_of(facts);
  std::vector<WallBar> bars;
  for (const Column& column : columns)
    bars.push_back({column.name, wall_parts(column.times, facts.steps.marked)});
  std::string html = section_start(facts);
  html += wall_legend_html();
  html += picture_html("wallbars", [&](const std::string& id, PictureWidth width) {
    return wall_bars_svg(id, bars, width);
  });
  html += lengths_text(facts) +
          "<details class=\"proof\"><summary>Every step, and the exact nanoseconds</summary>\n" +
          exact_table(columns) + every_step(facts) + "</details>\n" + other_devices(facts);
  return html + "</section>\n";
}

}  // namespace lanescope::report
