#include "lanescope/view/lanes.h"

#include "lanescope/view/lane_maker.h"

namespace lanescope::view {

Lanes::Lanes(const explain::Facts& facts)
    : Lanes(*facts.trace, [&facts]() -> const explain::Facts& { return facts; }) {
  LaneMaker(*this, facts).run();
}

const std::vector<IdleItem>& Lanes::idle_items() const {
  std::call_once(found_idle_items_, [this] {
    const auto& devices = facts().devices;
    for (std::uint32_t device = 0; device < devices.size(); ++device) {
      const auto& gaps = devices[device].gaps.gaps;
      for (std::uint32_t gap = 0; gap < gaps.size(); ++gap)
        for (std::uint32_t part = 0; part < gaps[gap].part_count; ++part)
          idle_items_.push_back({device, gap, gaps[gap].first_part + part});
    }
  });
  return idle_items_;
}

const analysis::IdlePart& Lanes::idle_part(std::uint32_t item) const {
  const IdleItem& at = idle_items()[item];
  return facts().devices[at.device].gaps.parts[at.part];
}

const analysis::Gap& Lanes::gap(std::uint32_t item) const {
  const IdleItem& at = idle_items()[item];
  return facts().devices[at.device].gaps.gaps[at.gap];
}

std::optional<std::uint32_t> Lanes::lane_of_idle(std::int64_t device) const {
  for (std::uint32_t i = 0; i < lanes_.size(); ++i)
    if (lanes_[i].kind == LaneKind::kIdle && lanes_[i].device == device) return i;
  return std::nullopt;
}

std::optional<std::int64_t> Lanes::rank_of(const Lane& lane) const {
  return lane.group < rank_of_group_.size() ? rank_of_group_[lane.group] : std::nullopt;
}

std::optional<LanePlace> Lanes::place(SliceId slice) const {
  const Trace& trace = *trace_;
  if (raw(slice) >= trace.slices().size()) return std::nullopt;
  const TrackId track = trace.slices().track[raw(slice)];
  const std::uint32_t number =
      lanes_of_track_[raw(track)][lane_part_of(trace.track(track).kind, trace.kind(slice))];
  if (number == kNoLane) return std::nullopt;
  const Lane& lane = lanes_[number];
  for (std::uint32_t row = 0; row < lane.row_count; ++row) {
    const std::size_t at = index_.lower_bound(lane.first_row + row, trace.start_ns(slice));
    if (at < index_.size(lane.first_row + row) &&
        index_.slice(lane.first_row + row, at).id == raw(slice))
      return LanePlace{number, row, at};
  }
  return std::nullopt;
}

}  // namespace lanescope::view
