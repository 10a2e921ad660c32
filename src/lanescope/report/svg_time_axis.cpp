#include "lanescope/report/svg_time_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lanescope::report {
namespace {

// The smallest of 1, 2, 5, 10, 20, ... ns that gives at most `most` intervals. Ends at 5e18 at the
// latest, which gives at most one.
std::int64_t round_step(std::int64_t length_ns, int most) {
  std::int64_t power = 1;
  for (;; power *= 10)
    for (const std::int64_t digit : {1, 2, 5})
      if (length_ns / (power * digit) <= most) return power * digit;
}

std::pair<std::int64_t, const char*> unit_of(std::int64_t length_ns) {
  if (length_ns >= 1'000'000'000) return {1'000'000'000, "s"};
  if (length_ns >= 1'000'000) return {1'000'000, "ms"};
  if (length_ns >= 1'000) return {1'000, "us"};
  return {1, "ns"};
}

}  // namespace

std::vector<TimeTick> time_ticks(std::int64_t length_ns, int most) {
  std::vector<TimeTick> ticks{{0, "0"}};
  if (length_ns < 1) return ticks;
  const std::int64_t step = round_step(length_ns, std::max(most, 1));
  const auto [unit_ns, unit] = unit_of(length_ns);
  int digits = 0;  // after the point, as many as a step needs
  for (std::int64_t size = unit_ns; size > step; size /= 10) ++digits;
  for (std::int64_t i = 1; i <= length_ns / step; ++i)
    ticks.push_back(
        {i * step,
         fmt::format("{:.{}f} {}", static_cast<double>(i * step) / static_cast<double>(unit_ns),
                     digits, unit)});
  return ticks;
}

void draw_time_axis(SvgWriter& svg, double x1, double x2, double y, std::int64_t length_ns) {
  svg.line(x1, y, x2, y, "axis");
  for (const TimeTick& tick :
       time_ticks(length_ns, std::clamp(static_cast<int>((x2 - x1) / 72), 1, 8))) {
    const double part =
        length_ns < 1 ? 0 : static_cast<double>(tick.at_ns) / static_cast<double>(length_ns);
    const double x = x1 + (x2 - x1) * part;
    svg.line(x, y, x, y + 4, "axis");
    svg.text(x, y + 15, "small", tick.label,
             part > 0.96   ? SvgWriter::Anchor::kEnd
             : part < 0.02 ? SvgWriter::Anchor::kStart
                           : SvgWriter::Anchor::kMiddle);
  }
}

}  // namespace lanescope::report
