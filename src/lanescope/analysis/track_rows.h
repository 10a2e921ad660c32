// Rows of the table of names, from pieces of one track at a time. Private to averages_by_track.cpp and track_blocks.cpp.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "lanescope/analysis/busy_periods.h"
#include "lanescope/analysis/torch_event_rows.h"
#include "lanescope/base/unset_array.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis::by_track {

inline constexpr std::uint32_t kNoIndex = ~std::uint32_t{0};
inline constexpr std::int64_t kEarliest = std::numeric_limits<std::int64_t>::min();

// Slices of one track that one thread reads at once.
struct Block {
  std::uint32_t track = 0;
  std::uint32_t first = 0, count = 0;
  std::uint32_t first_word = 0;            // of RowInputs::is_row
  std::uint32_t rows_before = 0;           // of the track
  std::int64_t latest_end_ns = kEarliest;  // of its slices
  std::vector<EventKey> overhead;          // rows of the profiler's own work
  bool has_overhead_on_device = false, has_annotation_on_device = false;
  BusyPeriods work;  // device work
  std::uint32_t work_count = 0;
  std::int64_t work_start_ns = 0, work_end_ns = 0;  // from the first start to the last end
  TorchEventsNotes notes;
};

// The events [first, end) of a track; nothing is open at either end.
struct Piece {
  std::uint32_t track = 0;
  std::uint32_t first = 0, end = 0;
  bool is_first = true;  // of its track
};

struct Row {
  std::uint32_t key = 0;
  std::int64_t count = 0;
  std::int64_t cpu_ns = 0, self_cpu_ns = 0, cpu_union_ns = 0;
  std::int64_t device_ns = 0, self_device_ns = 0;
  EventKey first;
  bool is_top_level = false;
  std::uint32_t piece = kNoIndex;     // the piece that `until_ns` is about
  std::int64_t until_ns = kEarliest;  // cpu_union_ns covers the time up to here
};

// What a row is grouped by: its name, and whether it is on the device or an annotation.
inline constexpr std::uint32_t kOnDevice = 1, kAnnotation = 2, kKeysOfName = 4;

void add_notes(const TorchEventsNotes& from, TorchEventsNotes& to);

// What all threads read while they make rows. Borrows the trace and its rows.
struct RowInputs {
  const Trace& trace;
  const TorchEventRows& rows;
  std::vector<std::uint64_t> is_row{};  // one bit per slice; a block begins at first_word
  std::vector<std::uint32_t> names{},
      op_names{};                         // numbers of names, by StringId; op_names: of operators
  UnsetArray<std::int64_t> kernels_ns{};  // by slice: time of the kernels that it launched
  std::vector<EventKey> overhead{};       // events of all tracks but the main one, in order
  std::vector<BusyTrack> work{};          // by track
  bool counts_overhead_claims = false;

  bool is_row_at(const Block& block, std::uint32_t at) const {
    return (is_row[block.first_word + at / 64] >> (at % 64) & 1) != 0;
  }
  std::uint32_t row_key(SliceId id, bool on_device) const {
    const CategoryKind kind = trace.kind(id);
    const std::uint32_t text = raw(trace.slices().name[raw(id)]);
    const std::uint32_t name = kind == CategoryKind::kCpuOp ? op_names[text] : names[text];
    return name * kKeysOfName + (on_device ? kOnDevice : 0) +
           (is_annotation(kind) ? kAnnotation : 0);
  }
};

// The rows that one thread has made. Borrows its inputs.
class RowMaker {
 public:
  RowMaker(const RowInputs& inputs, std::size_t key_count)
      : in_(inputs), row_of_(key_count, kNoIndex) {}

  // Makes the rows of a piece. `moved`: events that are on other tracks but belong to this thread, in order. `blocks`: those of
  // the piece's track.
  void add(const Piece& piece, std::uint32_t number, std::span<const EventKey> moved,
           std::span<const Block> blocks);

  const std::vector<Row>& rows() const { return rows_; }
  const TorchEventsNotes& notes() const { return notes_; }  // does not count claimed()
  // Operators whose kernels torch would also count in one of the profiler's own rows. In any order; an operator is in the list
  // once for each such row.
  const std::vector<SliceId>& claimed() const { return claimed_; }
  std::int64_t annotation_span_ns() const { return annotation_span_ns_; }
  std::int64_t annotation_busy_ns() const { return annotation_busy_ns_; }

 private:
  // An event on a thread, while what is around it is open.
  struct Node {
    EventKey key;
    std::uint32_t row_key = 0;
    std::uint32_t parent = kNoIndex, child_count = 0;
    bool is_async = false, is_removed = false;
    std::int64_t kernels_ns = 0, children_ns = 0, children_device_ns = 0;
  };

  Row& row_at(std::uint32_t key, const EventKey& event, bool is_top_level);
  void add_device_event(const EventKey& key, BusyPlace& place);
  void begin_group();
  void push(const EventKey& key);
  void end_group();
  void count_overhead_claims();
  void build_tree();
  void merge_same_names();
  void add_up();
  void add_event(const Node& node);

  const RowInputs& in_;
  std::vector<std::uint32_t> row_of_;  // by key
  std::vector<Row> rows_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> open_;  // nodes
  std::int64_t latest_end_ns_ = kEarliest;
  bool is_in_order_ = true;
  std::uint32_t piece_ = 0;
  TrackId track_{};
  TorchEventsNotes notes_;
  std::vector<SliceId> claimed_;
  std::int64_t annotation_span_ns_ = 0, annotation_busy_ns_ = 0;
};

}  // namespace lanescope::analysis::by_track
