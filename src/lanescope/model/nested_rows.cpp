// Example: A [0, 10), B [2, 5), C [4, 8). B lies in A: row 0. C overlaps B without lying in it:
// row 1.
#include "lanescope/model/nested_rows.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace lanescope {
namespace {

constexpr std::size_t kSearchedRows = 64;

// Which row each slice takes, for slices in the order of their start.
class RowChooser {
 public:
  std::uint32_t choose(std::int64_t start, std::int64_t end) {
    for (std::size_t i = 0; i < open_.size(); ++i) {
      std::vector<std::int64_t>& ends = open_[i];
      while (!ends.empty() && ends.back() <= start) ends.pop_back();
      if (!ends.empty() && ends.back() < end) continue;
      ends.push_back(end);
      return static_cast<std::uint32_t>(i);
    }
    if (open_.size() < kSearchedRows) {
      open_.push_back({end});
      return row_count_++;
    }
    std::uint32_t row = row_count_;
    if (!flat_.empty() && flat_.top().first <= start) {
      row = flat_.top().second;
      flat_.pop();
    } else {
      ++row_count_;
    }
    flat_.emplace(end, row);
    return row;
  }
  std::uint32_t row_count() const { return row_count_; }

 private:
  using Flat = std::pair<std::int64_t, std::uint32_t>;  // the end of its last slice, the row
  std::vector<std::vector<std::int64_t>> open_;  // of the searched rows: ends, innermost last
  std::priority_queue<Flat, std::vector<Flat>, std::greater<>> flat_;
  std::uint32_t row_count_ = 0;
};

}  // namespace

NestedRows find_nested_rows(const Trace& trace, const Track& track) {
  RowChooser chooser;
  std::vector<std::uint32_t> row_of(track.slice_count);
  for (std::uint32_t i = 0; i < track.slice_count; ++i) {
    const SliceId slice{track.first_slice + i};
    row_of[i] = chooser.choose(trace.start_ns(slice), trace.end_ns(slice));
  }
  NestedRows rows;
  rows.row_begin.assign(chooser.row_count() + std::size_t{1}, 0);
  for (const std::uint32_t row : row_of) ++rows.row_begin[row + 1];
  for (std::size_t i = 1; i < rows.row_begin.size(); ++i)
    rows.row_begin[i] += rows.row_begin[i - 1];
  std::vector<std::uint32_t> next(rows.row_begin.begin(), rows.row_begin.end() - 1);
  rows.slices.resize(track.slice_count);
  for (std::uint32_t i = 0; i < track.slice_count; ++i)
    rows.slices[next[row_of[i]]++] = track.first_slice + i;
  return rows;
}

}  // namespace lanescope
