// A time axis with round ticks in one unit.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/report/svg_writer.h"

namespace lanescope::report {

struct TimeTick {
  std::int64_t at_ns = 0;  // from the axis's origin
  std::string label;       // "20 us", "0.5 ms"; 0 is "0"
};

// Ticks at 0, d, 2d, ... up to `length_ns`. d is the smallest of 1, 2 or 5 times a power of ten
// that gives at most `most` intervals. All labels have the unit of the length (ns, us, ms or s) and
// as many digits as d needs. A length below 1 has only the tick 0.
std::vector<TimeTick> time_ticks(std::int64_t length_ns, int most);

// Line, ticks and labels for [0, length_ns] from x1 to x2. Its top is y, its height
// kTimeAxisHeight. Has as many ticks as there is room for, at most 8.
void draw_time_axis(SvgWriter& svg, double x1, double x2, double y, std::int64_t length_ns);
inline constexpr double kTimeAxisHeight = 18;

}  // namespace lanescope::report
