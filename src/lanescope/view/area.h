// Sums over a selected area of lanes and time, and the same as a tree of calls.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/view/lanes.h"

namespace lanescope::view {

// Nanoseconds of the trace.
struct AreaRequest {
  std::int64_t start_ns = 0, end_ns = 0;
  std::vector<std::uint32_t> lanes;  // valid numbers
};

// Slices that touch the area. Times are the parts inside of it.
struct AreaLane {
  std::uint32_t lane = 0;
  std::uint64_t count = 0;
  std::int64_t busy_ns = 0;  // union
};
struct AreaName {
  StringId name{};
  TimeKind kind = TimeKind::kOther;
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;  // without the slices one row below
  SliceId longest = kNone<SliceId>;
};
struct AreaKind {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
};
struct AreaGaps {
  std::int64_t device = 0;
  analysis::IdleCause cause{};
  std::uint64_t count = 0;
  std::int64_t ns = 0;
};
struct LaunchDelay {  // of GPU work that begins in the area
  std::uint64_t count = 0;
  std::int64_t median_ns = 0, smallest_ns = 0, largest_ns = 0;
};
struct Area {
  std::vector<AreaLane> lanes;
  std::vector<AreaName> names;  // most self time first
  std::array<AreaKind, kTimeKindCount> kinds{};
  std::vector<AreaGaps> gaps;  // of devices whose lanes are in it
  std::optional<LaunchDelay> launch_delay;
};

// `known`: the facts of the trace if they are gathered already; else launches are looked up in the
// trace. O(slices in the area * log), and without facts one pass over the trace. Any thread.
Area sum_area(const Lanes& lanes, const AreaRequest& request,
              const explain::Facts* known = nullptr);

// A name below a chain of names. Times are the parts inside the area.
struct FlameNode {
  StringId name{};
  TimeKind kind = TimeKind::kOther;
  std::int32_t parent = -1;  // index; parents come before their children
  std::uint64_t count = 0;
  std::int64_t total_ns = 0, self_ns = 0;
  SliceId longest = kNone<SliceId>;
};
// The flame graph of one lane with slices. At most kMostFlameNodes; what is left out is part of its parent's self
// time. O(slices in the area * log). Any thread.
std::vector<FlameNode> make_flame(const Lanes& lanes, std::uint32_t lane, std::int64_t start_ns,
                                  std::int64_t end_ns);
inline constexpr std::size_t kMostFlameNodes = 20'000;

}  // namespace lanescope::view
