// Answers "what is in this window, at this zoom?" for rows of slices, in a time that depends on the
// width of the picture and not on the number of slices. docs/decisions/viewer.md#level-of-detail
//
// Problem: a picture is 2,000 pixels wide, a row may hold 100 million slices. Idea: three indexes
// over columns that are sorted by start.
//   1. A tree of the longest slice of each 16, 256, 4096, ... slices (0.27 bytes per slice).
//   2. The busy time before every 16th slice (0.5 bytes).
//   3. A grid of time: cells of 2^k ns, k chosen so that a cell has some 64 slices, then 2^(k+1), ...
//      A cell holds its whole answer (about 0.7 bytes per slice).
// Example: a row has 1,000,000 slices in 1 s, so cells are 2^16 ns. A picture of the whole second in
// steps of 2^19 ns copies the cells of 2^19 ns, 1,908 of them. A picture of 1 ms has 1,000 slices,
// which are returned as they are. In between, buckets are made with 1 and 2.
//
// All parts are flat arrays of plain rows, so that they can lie in a mapped file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lanescope/view/view_column.h"

namespace lanescope::view {

// The slices of one row, in order: no two overlap, and no two have the same start. A slice of length
// zero counts as 1 ns long for both. `id` is the owner's: a row of the trace, a gap, a step.
struct LevelSlice {
  std::int64_t start_ns = 0, dur_ns = 0;
  std::uint32_t id = 0;
};

// One slice (count 1, its own times), or several that are all shorter than a step and lie in the
// same step: from the start of the first to the end of the last.
struct LevelCell {
  std::int64_t start_ns = 0, dur_ns = 0;
  std::int64_t busy_ns = 0;  // sum of their durations
  std::uint32_t id = 0;      // of the longest; ties: the first
  std::uint32_t count = 1;
  bool operator==(const LevelCell&) const = default;
};

class LevelIndex {
 public:
  // Rows are added one after the other, each with its slices in order.
  void reserve(std::size_t slices);
  void begin_row();
  void add(const LevelSlice& slice) {
    start_ns_.push_back(slice.start_ns);
    if (slice.dur_ns >= kLong) {
      dur_ns_.push_back(kLong);
      long_.push_back({start_ns_.size() - 1, slice.dur_ns});
    } else {
      dur_ns_.push_back(static_cast<std::uint32_t>(slice.dur_ns));
    }
    id_.push_back(slice.id);
  }
  void end_row();  // makes the indexes of the row. O(slices of the row)

  std::size_t row_count() const { return rows_.size(); }
  std::size_t size(std::size_t row) const { return rows_[row].count; }
  LevelSlice slice(std::size_t row, std::size_t at) const {
    return at_position(rows_[row].first + at);
  }
  // The first slice that begins at or after `time_ns`; size(row): none. O(log n).
  std::size_t lower_bound(std::size_t row, std::int64_t time_ns) const;
  // [first, last) of the slices that touch [t0, t1). A slice of length zero touches the window that
  // has its start. O(log n).
  std::pair<std::size_t, std::size_t> range(std::size_t row, std::int64_t t0,
                                            std::int64_t t1) const;

  // What touches [t0, t1). At most `most_raw` slices are returned as they are; more are folded into
  // buckets of `step_ns`, a power of two, that begin at multiples of it. Every slice is in exactly
  // one cell, that of its start. Slices of a step or longer are never folded. Cells at the ends of
  // the window are whole, so they may count slices of their bucket that are outside of it. Cells
  // are added in order of time. O(cells * log n).
  void cells(std::size_t row, std::int64_t t0, std::int64_t t1, std::int64_t step_ns,
             std::size_t most_raw, std::vector<LevelCell>& into) const;

  // Sum of durations of slices [first, last). O(1).
  std::int64_t busy_ns(std::size_t row, std::size_t first, std::size_t last) const;
  // Time inside [t0, t1) that the row's slices cover. O(log n).
  std::int64_t busy_within_ns(std::size_t row, std::int64_t t0, std::int64_t t1) const;
  // The longest of slices [first, last), not empty; ties: the first. O(log n).
  std::size_t longest(std::size_t row, std::size_t first, std::size_t last) const;

  std::size_t slice_count() const { return start_ns_.size(); }
  std::size_t column_bytes() const;  // of starts, durations and ids
  std::size_t index_bytes() const;   // of everything else

 private:
  static constexpr std::uint32_t kLong = ~std::uint32_t{0};  // the duration is in long_
  static constexpr std::size_t kFan = 16, kGridSlices = 64, kFewSlices = 256;
  static constexpr int kMostGridShift = 31;  // a cell's times fit 32 bits

  // A duration of 2^32 - 1 ns or more.
  struct LongDur {
    std::uint64_t position = 0;
    std::int64_t dur_ns = 0;
    bool operator==(const LongDur&) const = default;
  };
  struct Row {
    std::uint64_t first = 0, count = 0;
    std::uint64_t first_busy = 0;                   // in busy_
    std::uint64_t first_longest = 0;                // in longest_: all levels, the lowest first
    std::uint64_t first_cell = 0;                   // in cells_: all levels, the finest first
    std::int64_t grid_start_ns = 0;                 // of the first cell of the finest level
    std::uint64_t grid_cells = 0;                   // of the finest level
    std::int32_t grid_shift = -1, grid_levels = 0;  // cells of 2^grid_shift ns and up
    bool operator==(const Row&) const = default;
  };
  // The slices that begin in a cell. The last one is kept separately if it is as long as the cell
  // or longer.
  struct Cell {
    std::uint32_t count = 0;      // without the long one
    std::uint32_t offset_ns = 0;  // of the first, from the cell's start
    std::uint32_t extent_ns = 0;
    std::uint32_t busy_ns = 0;
    std::uint32_t longest = kLong;  // places in the row
    std::uint32_t long_one = kLong;
    bool operator==(const Cell&) const = default;
  };

  std::int64_t dur_at(std::uint64_t position) const {
    return dur_ns_[position] == kLong ? long_dur(position) : dur_ns_[position];
  }
  std::int64_t long_dur(std::uint64_t position) const;
  LevelSlice at_position(std::uint64_t position) const {
    return {start_ns_[position], dur_at(position), id_[position]};
  }
  void make_grid(Row& row);
  Cell joined(const Cell& left, const Cell& right, std::int64_t cell_start_ns, int shift,
              const Row& row) const;
  std::span<const Cell> grid(const Row& row, int shift) const;
  void add_one(std::uint64_t position, std::vector<LevelCell>& into) const;
  void add_cell(const Row& row, const Cell& cell, std::int64_t cell_start_ns,
                std::vector<LevelCell>& into) const;
  void add_buckets(std::size_t row, std::size_t first, std::size_t last, std::int64_t step_ns,
                   std::vector<LevelCell>& into) const;

  friend struct LevelSections;  // kept_level_index.h: how it lies in a file

  ViewColumn<std::int64_t> start_ns_;
  ViewColumn<std::uint32_t> dur_ns_, id_;
  ViewColumn<LongDur> long_;  // by position
  ViewColumn<Row> rows_;
  ViewColumn<std::int64_t> busy_;      // before slice 0, 16, 32, ... of a row
  ViewColumn<std::uint32_t> longest_;  // places in the row
  ViewColumn<Cell> cells_;
};

}  // namespace lanescope::view
