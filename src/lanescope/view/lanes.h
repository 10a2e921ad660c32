// The lanes of a trace: what is drawn, in which order, and the index that answers for each row.
// docs/decisions/viewer.md#lanes
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
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

// The kind of events that have a name; it decides how the name is shortened. kWork also if other events share the name.
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

// A step of the program, when steps are marked or were found.
struct LaneStep {
  std::int64_t number = 0;
  std::int64_t start_ns = 0, dur_ns = 0;                // on the CPU
  std::int64_t device_start_ns = 0, device_dur_ns = 0;  // Facts::step_window()
  SliceId slice = kNone<SliceId>;
  std::uint16_t has_number = 0, is_steady = 0;  // 0 or 1
  bool operator==(const LaneStep&) const = default;
};

// What the first screen shows of a trace and takes a pass over all events to compute.
struct LaneSummary {
  std::int64_t origin_ns = 0, end_ns = 0;  // earliest and latest time of any event
  std::optional<std::int64_t> main_device;
  std::optional<std::uint32_t> typical_step;         // steady, of median length
  std::uint64_t work_count = 0, launched_count = 0;  // GPU work; that with a known launch
  std::uint64_t early_count = 0;                     // GPU work that begins before its launch
  bool operator==(const LaneSummary&) const = default;
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

// Borrows the trace and its facts. Read-only once made; any thread.
class Lanes {
 public:
  using GetFacts = std::function<const explain::Facts&()>;

  // O(n log n) for tracks whose slices overlap, else O(n). About 17 bytes of columns and at most 2
  // of index a slice.
  explicit Lanes(const explain::Facts& facts);
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  const Trace& trace() const { return *trace_; }
  const LaneSummary& summary() const { return summary_; }
  std::span<const LaneStep> steps() const { return steps_.rows(); }  // empty: none are marked

  const std::vector<LaneGroup>& groups() const { return groups_; }
  const std::vector<Lane>& lanes() const { return lanes_; }  // in the order in which to show them
  const LevelIndex& index() const { return index_; }
  const CounterSeries& counter(const Lane& lane) const { return counters_[lane.counter]; }
  // The cause of an item of a kIdle lane, by its id. It is known without the facts.
  analysis::IdleCause idle_cause(std::uint32_t item) const {
    return static_cast<analysis::IdleCause>(idle_causes_[item]);
  }
  const std::vector<IdleItem>& idle_items() const;
  const analysis::IdlePart& idle_part(std::uint32_t item) const;
  const analysis::Gap& gap(std::uint32_t item) const;
  // Lanes from an index file compute their facts at the first call: O(n log n) over the trace.
  const explain::Facts& facts() const { return get_facts_(); }

  // The earliest time of any event; times of the page count from it. And the latest.
  std::int64_t origin_ns() const { return summary_.origin_ns; }
  std::int64_t end_ns() const { return summary_.end_ns; }

  TimeKind kind(SliceId slice) const { return kinds_[raw(slice)]; }
  NameUse name_use(StringId name) const { return name_uses_[raw(name)]; }
  // The rank whose lane it is, in a trace of several ranks. Nothing: the trace is of one program.
  std::optional<std::int64_t> rank_of(const Lane& lane) const;
  // Where a slice is drawn. Nothing: it is no row of the trace. O(rows of its lane * log n).
  std::optional<LanePlace> place(SliceId slice) const;
  std::optional<std::uint32_t> lane_of_idle(std::int64_t device) const;  // by its number
  // True: the items of such a lane are slices of the trace, not steps or gaps.
  static bool has_slices(LaneKind kind) {
    return kind != LaneKind::kSteps && kind != LaneKind::kIdle && kind != LaneKind::kCounter;
  }

 private:
  friend class LaneMaker;
  friend struct LaneSections;  // kept_lanes.cpp: how they lie in an index file
  Lanes(const Trace& trace, GetFacts get_facts)
      : trace_(&trace), get_facts_(std::move(get_facts)) {}

  static constexpr std::size_t kParts = 4;  // lanes that a track may have

  const Trace* trace_;
  GetFacts get_facts_;
  LaneSummary summary_;
  std::vector<LaneGroup> groups_;
  std::vector<Lane> lanes_;
  LevelIndex index_;
  std::vector<CounterSeries> counters_;
  ViewColumn<LaneStep> steps_;
  ViewColumn<std::uint8_t> idle_causes_;
  mutable std::once_flag found_idle_items_;
  mutable std::vector<IdleItem> idle_items_;
  std::vector<std::optional<std::int64_t>>
      rank_of_group_;  // of a trace of several ranks; else empty
  std::vector<std::array<std::uint32_t, kParts>> lanes_of_track_;  // kNoLane: none
  ViewColumn<TimeKind> kinds_;                                     // by slice
  ViewColumn<NameUse> name_uses_;                                  // by name
};

}  // namespace lanescope::view
