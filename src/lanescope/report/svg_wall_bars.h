// The parts of a step's wall as pictures: stacked bars for a few steps, and columns for all steps
// of a recording.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/report/svg_writer.h"

namespace lanescope::report {

// The parts that bars show, in order. They add up to the wall; idle time is two of them.
// Waiting for the CPU is docs/definitions/wall.md#idle-causes; other idle is the rest of idle.
enum class WallPart : std::uint8_t { kCompute, kCommunication, kCopy, kWaitingForCpu, kOtherIdle };
inline constexpr std::size_t kWallPartCount = 5;
using WallParts = std::array<std::int64_t, kWallPartCount>;

WallParts wall_parts(const explain::WallTimes& times, bool steps_are_marked);
const char* wall_part_text(WallPart part);
const char* wall_part_class(WallPart part);  // of the page's style

struct WallBar {
  std::string label;  // "steady step, mean of 18"
  WallParts parts{};  // nanoseconds
};

// One horizontal bar each, all on the same time scale. The scale ends at three times the first bar;
// a longer bar is cut there, and its number says how long it is. Empty without bars.
std::string wall_bars_svg(std::string_view id, const std::vector<WallBar>& bars,
                          PictureWidth width = PictureWidth::kWide);

// One column per step of the device, in order. With more than kMostStepColumns steps, a column is
// the mean of several neighbours, and a thin line goes up to the longest of them. The first and the
// last step always have columns of their own.
struct StepColumn {
  std::size_t first = 0, count = 1;  // indices into the device's walls
  WallParts parts{};                 // mean
  std::int64_t mean_ns = 0, longest_ns = 0;
};
inline constexpr std::size_t kMostStepColumns = 120;
std::vector<StepColumn> step_columns(const std::vector<explain::WallTimes>& walls,
                                     bool steps_are_marked);
// `labels`, one per column, are below the columns if there is room, else only below the first and
// the last.
std::string step_columns_svg(std::string_view id, const std::vector<StepColumn>& columns,
                             const std::vector<std::string>& labels,
                             PictureWidth width = PictureWidth::kWide);

}  // namespace lanescope::report
