// Makes Lanes from facts: which lanes there are, which of them matter, and their order. Internal to view/.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "lanescope/analysis/vendor_rows.h"
#include "lanescope/view/lanes.h"

namespace lanescope::view {

inline constexpr std::uint32_t kNoLane = ~std::uint32_t{0};

// Which lane of its track a slice belongs to.
enum LanePart : std::uint8_t { kBody, kFrames, kRanges, kWaits };
LanePart lane_part_of(TrackKind track, CategoryKind kind);

// Call run() once.
class LaneMaker {
 public:
  LaneMaker(Lanes& lanes, const explain::Facts& facts)
      : out_(lanes), facts_(facts), trace_(*facts.trace) {}

  void run();

 private:
  // Slices in order of start, with the row of each, become the rows of one lane.
  struct Placed {
    std::uint32_t slice, row;
  };

  // lane_maker.cpp: lanes of slices.
  void find_span();
  void summarize();
  void find_device_threads();
  void find_ranks();
  void add_steps();
  void add_track(TrackId id);
  void add_async_tracks();  // ids of one process and category share a lane
  void add_idle();
  void add_row(Lane& lane, const std::vector<LevelSlice>& items);  // items must not overlap
  void add_lane(Lane lane, const std::vector<Placed>& placed);

  // lane_counters.cpp: lanes of counters.
  void add_queues();
  void add_memory();
  void add_counters();
  void add_counter(Lane lane, CounterSeries series);
  std::uint32_t cpu_group();
  const Track& counted_by(const Track& counter) const;

  // lane_choice.cpp: which lanes matter, and their order.
  void choose();
  // Marks the busiest candidates as main: at most `most`, of one group `most_of_group`. Ties: the first.
  struct Candidate {
    std::uint32_t lane;
    std::int64_t busy;
  };
  void mark_busiest(std::vector<Candidate> candidates, std::size_t most, std::size_t most_of_group);
  void mark_streams(std::int64_t device);
  void mark_launchers();
  void mark_lanes_of_ranks();
  void mark_device_threads();
  void mark_other_threads(std::size_t most);
  void keep_few();
  bool has_samples_of(const Lane& lane, TrackId thread) const;
  TrackId busiest_thread() const;
  void put_in_order();
  std::vector<std::uint32_t> order_of_lanes() const;

  // Makes the group together with its first lane.
  std::uint32_t group(const LaneGroup& wanted);
  std::uint32_t group_of(const Track& track);
  std::uint32_t device_group(std::int64_t device);
  std::uint32_t trace_group() { return group({LaneGroup::Kind::kTrace, kNone<ProcessId>, {}}); }
  template <typename Key>
  std::uint32_t cached_group(std::map<Key, std::uint32_t>& known, Key key,
                             const LaneGroup& wanted) {
    const auto [entry, is_new] = known.emplace(key, 0);
    if (is_new) {
      out_.groups_.push_back(wanted);
      entry->second = static_cast<std::uint32_t>(out_.groups_.size() - 1);
    }
    return entry->second;
  }

  Lanes& out_;
  const explain::Facts& facts_;
  const Trace& trace_;
  std::map<std::int64_t, std::uint32_t> device_groups_;
  std::map<std::uint32_t, std::uint32_t> process_groups_, process_gpu_groups_;
  std::uint32_t main_group_ = kNoLane;
  TrackId main_thread_ = kNone<TrackId>;
  std::vector<analysis::VendorRow> vendor_rows_;  // of a device that is no GPU
  std::vector<bool> is_device_thread_;            // by track: whether it has vendor rows
  std::array<std::vector<std::uint32_t>, Lanes::kParts> parts_;
  std::vector<Placed> placed_;
};

}  // namespace lanescope::view
