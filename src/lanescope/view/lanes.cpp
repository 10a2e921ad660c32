#include "lanescope/view/lanes.h"

#include "lanescope/view/lane_maker.h"

namespace lanescope::view {

Lanes::Lanes(const explain::Facts& facts) : facts_(&facts) { LaneMaker(*this, facts).run(); }

const analysis::IdlePart& Lanes::idle_part(std::uint32_t item) const {
  return facts_->devices[idle_items_[item].device].gaps.parts[idle_items_[item].part];
}

const analysis::Gap& Lanes::gap(std::uint32_t item) const {
  return facts_->devices[idle_items_[item].device].gaps.gaps[idle_items_[item].gap];
}

std::optional<std::int64_t> Lanes::rank_of(const Lane& lane) const {
  return lane.group < rank_of_group_.size() ? rank_of_group_[lane.group] : std::nullopt;
}

std::optional<LanePlace> Lanes::place(SliceId slice) const {
  const Trace& trace = *facts_->trace;
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
