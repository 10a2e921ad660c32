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

// Ticks at 0, d, 2d, ... up to `length_ns`, where d is 1, 2 or 5 times a power of ten, chosen so
// that there are at most `most` steps. All labels have the same unit (ns, us, ms or s), that of the
// length, and as many digits as d needs. A length under 1 has the tick 0 only.
std::vector<TimeTick> time_ticks(std::int64_t length_ns, int most);

// Line, ticks and labels for [0, length_ns] between x1 and x2, hanging from y; 18 units high. As
// many ticks as there is room for, 8 at most.
void draw_time_axis(SvgWriter& svg, double x1, double x2, double y, std::int64_t length_ns);
inline constexpr double kTimeAxisHeight = 18;

}  // namespace lanescope::report
