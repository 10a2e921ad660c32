// Rows in which the slices of one track nest. Viewers, and the files of Perfetto and speedscope,
// can show a slice only inside another one or after it; kernels and async slices also overlap.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lanescope/model/trace.h"

namespace lanescope {

// Every slice of the track is in one row, in the track's order (start, longer first).
struct NestedRows {
  std::vector<std::uint32_t> slices;     // row after row; indices of Trace::slices()
  std::vector<std::uint32_t> row_begin;  // in `slices`; one more entry than rows
  std::size_t row_count() const { return row_begin.size() - 1; }
  std::span<const std::uint32_t> row(std::size_t i) const {
    return std::span(slices).subspan(row_begin[i], row_begin[i + 1] - row_begin[i]);
  }
};

// A slice takes the first row where it lies inside the innermost open slice or after all of them.
// Rows after the 64th take only slices that follow each other, so that the cost is O(n log n)
// however slices overlap. Memory: 12 bytes a slice of the track.
NestedRows find_nested_rows(const Trace& trace, const Track& track);

// The begins and ends of a row one by one, in order of time. Each end belongs to the open slice that
// began last. At equal times ends come before begins, except the end of a slice without duration.
// Borrows both.
class EdgeCursor {
 public:
  EdgeCursor(const Trace& trace, std::span<const std::uint32_t> row) : trace_(&trace), row_(row) {}
  bool is_done() const { return open_.empty() && row_.empty(); }
  // Unless done: whether this is the end of slice(), or its begin.
  bool is_end() const {
    return !open_.empty() && (row_.empty() || trace_->end_ns(open_.back()) <=
                                                  trace_->start_ns(SliceId{row_.front()}));
  }
  SliceId slice() const { return is_end() ? open_.back() : SliceId{row_.front()}; }
  std::int64_t time_ns() const {
    return is_end() ? trace_->end_ns(open_.back()) : trace_->start_ns(SliceId{row_.front()});
  }
  void next() {
    if (is_end()) return open_.pop_back();
    open_.push_back(SliceId{row_.front()});
    row_ = row_.subspan(1);
  }

 private:
  const Trace* trace_;
  std::span<const std::uint32_t> row_;  // those that did not begin yet
  std::vector<SliceId> open_;           // innermost last
};

// Calls begin(slice) and end(slice) for each slice of a row, in the order of EdgeCursor.
template <typename Begin, typename End>
void for_each_edge(const Trace& trace, std::span<const std::uint32_t> row, Begin begin, End end) {
  for (EdgeCursor edge(trace, row); !edge.is_done(); edge.next()) {
    if (edge.is_end())
      end(edge.slice());
    else
      begin(edge.slice());
  }
}

}  // namespace lanescope
