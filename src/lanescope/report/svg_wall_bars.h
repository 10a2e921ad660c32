// Where the wall of a step went, as pictures: one stacked bar a step, and a column for every step
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

// One horizontal bar each, all in one time scale. The scale ends at three times the first bar; a
// longer bar goes on beyond it, and its number says how far. Empty without bars.
std::string wall_bars_svg(std::string_view id, const std::vector<WallBar>& bars,
                          PictureWidth width = PictureWidth::kWide);

// One column a step of the device, first to last. Of more than 120 steps a column is the mean of
// several neighbours, and a thin line reaches to the longest of them. The first step and the last
// one always have a column of their own.
struct StepColumn {
  std::size_t first = 0, count = 1;  // of the device's walls
  WallParts parts{};                 // mean
  std::int64_t mean_ns = 0, longest_ns = 0;
};
inline constexpr std::size_t kMostStepColumns = 120;
std::vector<StepColumn> step_columns(const std::vector<explain::WallTimes>& walls,
                                     bool steps_are_marked);
// `labels`, one a column, are written below the columns where there is room, else below the outer
// two.
std::string step_columns_svg(std::string_view id, const std::vector<StepColumn>& columns,
                             const std::vector<std::string>& labels,
                             PictureWidth width = PictureWidth::kWide);

}  // namespace lanescope::report
