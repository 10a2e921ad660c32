#include "lanescope/report/svg_wall_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lanescope/report/svg_time_axis.h"
#include "lanescope/report/svg_writer.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using analysis::IdleCause;
using explain::WallTimes;

constexpr double kBarHeight = 22;
constexpr double kColumnsHeight = 120, kColumnsLeft = 56;

// Where bars begin and end. On a narrow screen, their names and numbers are above them.
struct BarLayout {
  explicit BarLayout(PictureWidth picture) : is_narrow(picture == PictureWidth::kNarrow) {
    if (!is_narrow) return;
    left = 4;
    right = picture_width(picture) - 14;
    title_room = 18;
  }
  bool is_narrow;
  double left = 190, right = 770, title_room = 0;
  double step() const { return kBarHeight + 10 + title_room; }
};

std::int64_t sum(const WallParts& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
}

double share(std::int64_t part, std::int64_t whole) {
  return whole <= 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string part_tooltip(WallPart part, std::int64_t ns, std::int64_t wall_ns) {
  return fmt::format("{}: {} ({} ns), {}", wall_part_text(part), format_time_ns(ns),
                     format_count(static_cast<std::uint64_t>(ns)),
                     format_percent(static_cast<double>(ns), static_cast<double>(wall_ns)));
}

std::string description_of(const std::vector<WallBar>& bars) {
  std::string text;
  for (const WallBar& bar : bars) {
    text += fmt::format("{}{}: {} in all", text.empty() ? "" : ". ", bar.label,
                        format_time_ns(sum(bar.parts)));
    for (std::size_t i = 0; i < kWallPartCount; ++i)
      if (bar.parts[i] > 0)
        text += fmt::format(", {} {}", wall_part_text(static_cast<WallPart>(i)),
                            format_time_ns(bar.parts[i]));
  }
  return text;
}

// The time at the top of the picture; longer columns are cut. The median column stays readable.
std::int64_t columns_scale(const std::vector<StepColumn>& columns) {
  std::vector<std::int64_t> lengths;
  std::int64_t longest = 0;
  for (const StepColumn& column : columns) {
    lengths.push_back(column.mean_ns);
    longest = std::max(longest, column.longest_ns);
  }
  return std::max<std::int64_t>(
      1, std::min(longest,
                  5 * std::max<std::int64_t>(1, analysis::median_of_steps(std::move(lengths)))));
}

}  // namespace

WallParts wall_parts(const WallTimes& times, bool steps_are_marked) {
  std::int64_t waiting = times.idle_by(IdleCause::kHostLate) +
                         times.idle_by(IdleCause::kAfterSync) +
                         times.idle_by(IdleCause::kLaunchLatency);
  if (steps_are_marked)
    waiting +=
        times.idle_by(IdleCause::kBeforeFirstWork) + times.idle_by(IdleCause::kAfterLastWork);
  const auto& part = times.partition;
  return {part.compute_ns, part.exposed_communication_ns, part.exposed_copy_ns, waiting,
          part.idle_ns - waiting};
}

const char* wall_part_text(WallPart part) {
  switch (part) {
    case WallPart::kCompute:
      return "compute";
    case WallPart::kCommunication:
      return "communication alone";
    case WallPart::kCopy:
      return "copies and memsets alone";
    case WallPart::kWaitingForCpu:
      return "idle, waiting for the CPU";
    case WallPart::kOtherIdle:
      return "idle for other reasons";
  }
  return "";
}

const char* wall_part_class(WallPart part) {
  switch (part) {
    case WallPart::kCompute:
      return "k-compute";
    case WallPart::kCommunication:
      return "k-comm";
    case WallPart::kCopy:
      return "k-copy";
    case WallPart::kWaitingForCpu:
      return "k-wait";
    case WallPart::kOtherIdle:
      return "k-idle";
  }
  return "";
}

std::string wall_bars_svg(std::string_view id, const std::vector<WallBar>& bars,
                          PictureWidth width) {
  if (bars.empty()) return {};
  std::int64_t longest = 1;
  for (const WallBar& bar : bars) longest = std::max(longest, sum(bar.parts));
  const std::int64_t scale =
      std::min(longest, 3 * std::max<std::int64_t>(1, sum(bars.front().parts)));
  const BarLayout layout(width);
  const double height = layout.step() * static_cast<double>(bars.size()) + kTimeAxisHeight + 4;
  SvgWriter svg(id, picture_width(width), height, "Where the wall of a step went",
                description_of(bars));
  double y = 2;
  for (const WallBar& bar : bars) {
    const std::int64_t wall = sum(bar.parts);
    if (layout.is_narrow) {
      svg.text(layout.left, y + 13, "small",
               fmt::format("{}: {}", bar.label, format_time_ns(wall)));
      y += layout.title_room;
    } else {
      svg.text(layout.left - 8, y + 16, "label", bar.label, SvgWriter::Anchor::kEnd);
      svg.text(layout.right + 10, y + 16, "label number", format_time_ns(wall));
    }
    std::int64_t before = 0;
    for (std::size_t i = 0; i < kWallPartCount; ++i) {
      const double from =
          layout.left + (layout.right - layout.left) * std::min(1.0, share(before, scale));
      before += bar.parts[i];
      const double to =
          layout.left + (layout.right - layout.left) * std::min(1.0, share(before, scale));
      if (bar.parts[i] <= 0 || to <= from) continue;
      const auto part = static_cast<WallPart>(i);
      svg.rect(from, y, std::max(to - from, 0.6), kBarHeight, wall_part_class(part),
               part_tooltip(part, bar.parts[i], wall));
      const std::string percent =
          format_percent(static_cast<double>(bar.parts[i]), static_cast<double>(wall));
      if (to - from > 52)
        svg.text((from + to) / 2, y + 15, fmt::format("in-{}", wall_part_class(part)), percent,
                 SvgWriter::Anchor::kMiddle);
    }
    if (wall > scale) svg.mark_continues_right(layout.right + 8, y, kBarHeight);
    y += layout.step() - layout.title_room;
  }
  draw_time_axis(svg, layout.left, layout.right, y, scale);
  return svg.take();
}

std::vector<StepColumn> step_columns(const std::vector<WallTimes>& walls, bool steps_are_marked) {
  std::vector<StepColumn> columns;
  const std::size_t inner = walls.size() < 2 ? 0 : walls.size() - 2;
  const std::size_t width =
      std::max<std::size_t>(1, (inner + kMostStepColumns - 3) / (kMostStepColumns - 2));
  for (std::size_t at = 0; at < walls.size();) {
    const bool is_outer = at == 0 || at + 1 == walls.size();
    StepColumn column;
    column.first = at;
    column.count = is_outer ? 1 : std::min(width, walls.size() - 1 - at);
    WallTimes total;
    for (std::size_t i = at; i < at + column.count; ++i) {
      total += walls[i];
      column.longest_ns = std::max(column.longest_ns, walls[i].partition.wall_ns);
    }
    column.parts = wall_parts(total, steps_are_marked);
    for (std::int64_t& part : column.parts) part /= static_cast<std::int64_t>(column.count);
    column.mean_ns = total.partition.wall_ns / static_cast<std::int64_t>(column.count);
    columns.push_back(column);
    at += column.count;
  }
  return columns;
}

std::string step_columns_svg(std::string_view id, const std::vector<StepColumn>& columns,
                             const std::vector<std::string>& labels, PictureWidth picture) {
  if (columns.size() < 2) return {};
  const std::int64_t scale = columns_scale(columns);
  SvgWriter svg(
      id, picture_width(picture), kColumnsHeight + 36, "Every step, first to last",
      fmt::format("{} columns; the highest shows {}, the scale ends at {}.", columns.size(),
                  format_time_ns(std::max_element(columns.begin(), columns.end(),
                                                  [](const auto& a, const auto& b) {
                                                    return a.longest_ns < b.longest_ns;
                                                  })
                                     ->longest_ns),
                  format_time_ns(scale)));
  const double top = 14, bottom = top + kColumnsHeight;
  const double columns_right = picture_width(picture) - 8;
  // A space of two columns' widths is between the outer columns and the rest.
  const double pitch =
      std::min(90.0, (columns_right - kColumnsLeft) / (static_cast<double>(columns.size()) + 1.0));
  const double right = kColumnsLeft + pitch * (static_cast<double>(columns.size()) + 1.0);
  for (const TimeTick& tick : time_ticks(scale, 4)) {
    const double y = bottom - kColumnsHeight * share(tick.at_ns, scale);
    svg.line(kColumnsLeft - 4, y, right, y, "grid");
    svg.text(kColumnsLeft - 8, y + 4, "small", tick.label, SvgWriter::Anchor::kEnd);
  }
  double x = kColumnsLeft + 2, free_from = 0;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const StepColumn& column = columns[c];
    if (c == 1 || (c + 1 == columns.size() && c > 1)) x += pitch / 2;
    const double width = std::max(1.0, pitch * 0.8);
    const double cut = std::min(1.0, share(scale, column.mean_ns));
    std::int64_t before = 0;
    for (std::size_t i = 0; i < kWallPartCount; ++i) {
      const double from = share(before, scale) * cut;
      before += column.parts[i];
      const double to = share(before, scale) * cut;
      if (to <= from) continue;
      svg.rect(
          x, bottom - kColumnsHeight * to, width, kColumnsHeight * (to - from),
          wall_part_class(static_cast<WallPart>(i)),
          fmt::format("{}{}", column.count > 1 ? "mean of neighbours; " : "",
                      part_tooltip(static_cast<WallPart>(i), column.parts[i], column.mean_ns)));
    }
    const double longest = bottom - kColumnsHeight * std::min(1.0, share(column.longest_ns, scale));
    if (column.count > 1)
      svg.line(x + width / 2, longest, x + width / 2,
               bottom - kColumnsHeight * std::min(1.0, share(column.mean_ns, scale)), "whisker");
    constexpr double kNumberWidth = 62;
    const double number_at = std::min(x, columns_right - kNumberWidth);
    if (column.longest_ns > scale && number_at >= free_from) {
      svg.text(number_at, top - 4, "small", format_time_ns(column.longest_ns));
      free_from = number_at + kNumberWidth;
    }
    if (pitch >= 60)
      svg.text(x + width / 2, bottom + 15, "small", labels[c], SvgWriter::Anchor::kMiddle);
    else if (c == 0)
      svg.text(x, bottom + 15, "small", labels[c]);
    else if (c + 1 == columns.size())
      svg.text(x + width, bottom + 15, "small", labels[c], SvgWriter::Anchor::kEnd);
    x += pitch;
  }
  svg.line(kColumnsLeft - 4, bottom, right, bottom, "axis");
  return svg.take();
}

}  // namespace lanescope::report
