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

// Calls begin(slice) and end(slice) for each slice of a row, in order of time. Each end belongs to
// the open slice that began last. At equal times ends come before begins, except the end of a slice
// without duration.
template <typename Begin, typename End>
void for_each_edge(const Trace& trace, std::span<const std::uint32_t> row, Begin begin, End end) {
  std::vector<SliceId> open;
  for (const std::uint32_t index : row) {
    const SliceId slice{index};
    for (; !open.empty() && trace.end_ns(open.back()) <= trace.start_ns(slice); open.pop_back())
      end(open.back());
    begin(slice);
    open.push_back(slice);
  }
  for (; !open.empty(); open.pop_back()) end(open.back());
}

}  // namespace lanescope
