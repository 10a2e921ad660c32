#include "lanescope/format/spool/clock_anchors.h"

#include <fmt/format.h>

#include <algorithm>

namespace lanescope::format {

std::string clock_anchors_json(const TickMap& clock, std::uint64_t ticks_per_second) {
  const std::vector<TickAnchor>& anchors = clock.anchors();
  const std::size_t count = std::min(anchors.size(), kMaxExportedAnchors);
  const double ns_per_tick =
      ticks_per_second != 0 ? 1e9 / static_cast<double>(ticks_per_second) : 1.0;
  std::string json;
  for (std::size_t i = 0; i < count; ++i) {
    const TickAnchor& anchor = anchors[count < 2 ? 0 : i * (anchors.size() - 1) / (count - 1)];
    const auto trace_unix_ns = clock.unix_ns(anchor.ticks);
    if (!trace_unix_ns) continue;
    const double width_ns = static_cast<double>(anchor.width_ticks) * ns_per_tick;
    json += fmt::format(
        R"({}{{"trace_unix_ns": {}, "monotonic_ns": {}, "realtime_ns": {}, "width_ns": {:.0f}}})",
        json.empty() ? "[" : ", ", *trace_unix_ns, anchor.monotonic_ns, anchor.realtime_ns,
        width_ns);
  }
  return json.empty() ? json : json + "]";
}

}  // namespace lanescope::format
