// The lanes of a trace: what is drawn, in which order, and the index that answers for each row.
// docs/decisions/viewer.md#lanes
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/view/counter_series.h"
#include "lanescope/view/level_index.h"

namespace lanescope::view {

// What kind of time a slice is. Each is one colour.
enum class TimeKind : std::uint8_t {
  kOperator,
  kAnnotation,
  kPython,
  kCall,
  kCompute,
  kCommunication,
  kCopy,
  kWait,  // a call that waits for the GPU, a wait on a stream
  kOther,
};
inline constexpr std::size_t kTimeKindCount = 9;

// What a name names, which decides its short form. A name of GPU work that others have too: kWork.
enum class NameUse : std::uint8_t { kOther, kWork, kFrame };

enum class LaneKind : std::uint8_t {
  kSteps,       // ids: indices into Facts::steps
  kCpu,         // a thread without its Python frames; rows are depths
  kPython,      // the Python frames of a thread; rows are depths
  kGpu,         // the work of a stream; row 0, and further rows for what overlaps it
  kAnnotation,  // ranges of the program, as the profiler projects them on a stream
  kSync,        // waits and events of a stream
  kIdle,        // when a device had nothing to do; ids: IdleItem
  kCounter,     // no rows
  kAsync,       // slices of async ids; rows hold what overlaps
  kDevice,  // a stream of a device that is no GPU, which the file writes as a thread; rows as of kGpu
};
inline constexpr std::size_t kLaneKindCount = 10;

enum class CounterUnit : std::uint8_t { kNone, kCount, kBytes };
enum class CounterSource : std::uint8_t { kFile, kQueueDepth, kAllocated, kReserved };

struct Lane {
  LaneKind kind = LaneKind::kCpu;
  std::uint32_t group = 0;
  TrackId track = kNone<TrackId>;  // kAsync: the first one; kNone: of a device or of the trace
  std::optional<std::int64_t> device = {};
  std::uint32_t first_row = 0, row_count = 0;  // of Lanes::index
  std::uint64_t slice_count = 0;
  std::int64_t busy_ns = 0;   // union of its slices
  bool is_main = false;       // one of the few that matter most
  bool is_quiet = false;      // hardly anything happens: folded at first
  std::uint32_t counter = 0;  // kCounter: of Lanes::counters
  CounterSource source = CounterSource::kFile;
  CounterUnit unit = CounterUnit::kNone;
};

struct LaneGroup {
  enum class Kind : std::uint8_t { kTrace, kCpu, kGpu } kind = Kind::kTrace;
  ProcessId process = kNone<ProcessId>;
  std::optional<std::int64_t> device;
};

// One part of a gap of a device, all of it with one cause.
struct IdleItem {
  std::uint32_t device = 0;  // index into Facts::devices
  std::uint32_t gap = 0, part = 0;
};

struct LanePlace {
  std::uint32_t lane = 0, row = 0;  // the row counts from the lane's first
  std::size_t at = 0;               // in the row
};

// Borrows the facts and their trace. Read-only once made; any thread.
class Lanes {
 public:
  // O(n log n) for tracks whose slices overlap, else O(n). About 17 bytes of columns and at most 2
  // of index a slice.
  explicit Lanes(const explain::Facts& facts);

  const std::vector<LaneGroup>& groups() const { return groups_; }
  const std::vector<Lane>& lanes() const { return lanes_; }  // in the order in which to show them
  const LevelIndex& index() const { return index_; }
  const CounterSeries& counter(const Lane& lane) const { return counters_[lane.counter]; }
  const std::vector<IdleItem>& idle_items() const { return idle_items_; }
  const analysis::IdlePart& idle_part(std::uint32_t item) const;
  const analysis::Gap& gap(std::uint32_t item) const;
  const explain::Facts& facts() const { return *facts_; }

  // The earliest time of any event; times of the page count from it. And the latest.
  std::int64_t origin_ns() const { return origin_ns_; }
  std::int64_t end_ns() const { return end_ns_; }

  TimeKind kind(SliceId slice) const { return kinds_[raw(slice)]; }
  NameUse name_use(StringId name) const { return name_uses_[raw(name)]; }
  // Of a trace of several ranks: whose lane it is. Nothing: the trace is of one program.
  std::optional<std::int64_t> rank_of(const Lane& lane) const;
  // Where a slice is drawn. Nothing: it is no row of the trace. O(rows of its lane * log n).
  std::optional<LanePlace> place(SliceId slice) const;
  std::optional<std::uint32_t> lane_of_idle(std::uint32_t device) const {
    return idle_lane_[device];
  }
  // Is a lane's item a slice of the trace, and not a step or a gap?
  static bool has_slices(LaneKind kind) {
    return kind != LaneKind::kSteps && kind != LaneKind::kIdle && kind != LaneKind::kCounter;
  }

 private:
  friend class LaneMaker;
  static constexpr std::size_t kParts = 4;  // lanes that a track may have

  const explain::Facts* facts_;
  std::vector<LaneGroup> groups_;
  std::vector<Lane> lanes_;
  LevelIndex index_;
  std::vector<CounterSeries> counters_;
  std::vector<IdleItem> idle_items_;
  std::vector<std::optional<std::uint32_t>> idle_lane_;  // by device
  std::vector<std::optional<std::int64_t>>
      rank_of_group_;  // of a trace of several ranks; else empty
  std::vector<std::array<std::uint32_t, kParts>> lanes_of_track_;  // kNoLane: none
  std::vector<TimeKind> kinds_;                                    // by slice
  std::vector<NameUse> name_uses_;                                 // by name
  std::int64_t origin_ns_ = 0, end_ns_ = 0;
};

}  // namespace lanescope::view
