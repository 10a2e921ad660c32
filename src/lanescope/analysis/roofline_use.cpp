#include "lanescope/analysis/roofline_use.h"

#include <map>
#include <utility>

namespace lanescope::analysis {

std::vector<HardwareUse> measure_roofline_rows(const Trace& trace, const DeviceTimeline& timeline,
                                               const Roofline& roofline,
                                               std::span<const RooflineRow> rows) {
  const auto samples = find_hardware_samples(trace, timeline.device);
  if (!samples) return {};
  // As compute_roofline_rows() makes rows.
  using Key = std::pair<std::uint32_t, std::uint32_t>;
  const auto key = [&](std::uint32_t work, SliceId kernel) {
    return Key{work, raw(trace.slices().name[raw(kernel)])};
  };
  std::map<Key, std::uint32_t> number_of;
  for (std::size_t i = 0; i < rows.size(); ++i)
    number_of.emplace(key(rows[i].work, rows[i].kernel), static_cast<std::uint32_t>(i));
  std::vector<MeasuredPiece> pieces;
  pieces.reserve(timeline.work.size());
  for (std::size_t i = 0; i < timeline.work.size(); ++i) {
    const DeviceWork& work = timeline.work[i];
    auto group = static_cast<std::uint32_t>(rows.size());  // work of no row
    if (const std::uint32_t call =
            i < roofline.call_of.size() ? roofline.call_of[i] : Roofline::kNoCall;
        call != Roofline::kNoCall) {
      const RooflineCall& of = roofline.calls[call];
      if (const auto known = number_of.find(key(of.work, of.kernel)); known != number_of.end())
        group = known->second;
    }
    pieces.push_back({work.start_ns, work.end_ns, group});
  }
  return measure_use(*samples, pieces, rows.size());
}

std::optional<double> moved_ratio(const RooflineRow& row, const HardwareUse& use) {
  if (!use.dram_read_bytes_per_second || !use.dram_write_bytes_per_second || row.bytes_per_s <= 0)
    return std::nullopt;
  return (*use.dram_read_bytes_per_second + *use.dram_write_bytes_per_second) / row.bytes_per_s;
}

}  // namespace lanescope::analysis
