#include "lanescope/view/level_index.h"

#include <algorithm>
#include <bit>

#include "lanescope/base/check.h"

namespace lanescope::view {
namespace {

// The multiple of 2^shift at or below a time, also for negative times.
std::int64_t floor_to(std::int64_t time_ns, int shift) { return (time_ns >> shift) << shift; }

int shift_of(std::int64_t step_ns) {
  return static_cast<int>(
             std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(step_ns, 1)))) -
         1;
}

}  // namespace

void LevelIndex::reserve(std::size_t slices) {
  start_ns_.reserve(slices);
  dur_ns_.reserve(slices);
  id_.reserve(slices);
}

void LevelIndex::begin_row() {
  Row row;
  row.first = start_ns_.size();
  rows_.push_back(row);
}

std::int64_t LevelIndex::long_dur(std::uint64_t position) const {
  const auto found = std::lower_bound(
      long_.begin(), long_.end(), position,
      [](const LongDur& each, std::uint64_t wanted) { return each.position < wanted; });
  return found->dur_ns;
}

void LevelIndex::end_row() {
  Row& row = rows_.last();
  row.count = start_ns_.size() - row.first;
  LANESCOPE_CHECK(row.count < kLong);
  row.first_busy = busy_.size();
  std::int64_t busy = 0;
  for (std::uint64_t i = 0; i < row.count; ++i) {
    if (i % kFan == 0) busy_.push_back(busy);
    busy += dur_at(row.first + i);
  }
  row.first_longest = longest_.size();
  // Level 1 looks at slices, level n at the entries of level n - 1.
  for (std::uint64_t from = 0; from < row.count; from += kFan) {
    std::uint64_t best = from;
    for (std::uint64_t i = from + 1; i < std::min(from + kFan, row.count); ++i)
      if (dur_at(row.first + i) > dur_at(row.first + best)) best = i;
    longest_.push_back(static_cast<std::uint32_t>(best));
  }
  std::uint64_t below = row.first_longest, below_count = longest_.size() - below;
  while (below_count > 1) {
    const std::uint64_t level = longest_.size();
    for (std::uint64_t from = 0; from < below_count; from += kFan) {
      std::uint32_t best = longest_[below + from];
      for (std::uint64_t i = from + 1; i < std::min(from + kFan, below_count); ++i)
        if (dur_at(row.first + longest_[below + i]) > dur_at(row.first + best))
          best = longest_[below + i];
      longest_.push_back(best);
    }
    below = level;
    below_count = longest_.size() - level;
  }
  make_grid(row);
}

void LevelIndex::make_grid(Row& row) {
  if (row.count < kFewSlices) return;
  const std::int64_t first_ns = start_ns_[row.first];
  const std::int64_t span_ns = start_ns_[row.first + row.count - 1] - first_ns + 1;
  // The smallest cells of which there are at most count / 64.
  int shift = 0;
  const auto most_cells = static_cast<std::int64_t>(row.count / kGridSlices);
  while (shift <= kMostGridShift && (span_ns >> shift) >= most_cells) ++shift;
  if (shift > kMostGridShift) return;
  row.grid_shift = shift;
  // Up to one cell for everything, or the largest that a cell can describe.
  int top = shift;
  while (top < kMostGridShift && (span_ns >> top) > 0) ++top;
  row.grid_levels = top - shift + 1;
  row.grid_start_ns = floor_to(first_ns, shift);
  row.first_cell = cells_.size();
  std::uint64_t at = 0;
  const std::int64_t cell_ns = std::int64_t{1} << shift;
  for (std::int64_t cell_start = row.grid_start_ns; at < row.count; cell_start += cell_ns) {
    Cell cell;
    std::int64_t longest_ns = -1, end_ns = 0, busy_ns = 0;
    for (; at < row.count && start_ns_[row.first + at] - cell_start < cell_ns; ++at) {
      const std::int64_t start = start_ns_[row.first + at], dur = dur_at(row.first + at);
      if (dur >= cell_ns) {
        cell.long_one = static_cast<std::uint32_t>(at);
        continue;
      }
      if (cell.count == 0) cell.offset_ns = static_cast<std::uint32_t>(start - cell_start);
      ++cell.count;
      busy_ns += dur;
      end_ns = start + dur;
      if (dur > longest_ns) {
        longest_ns = dur;
        cell.longest = static_cast<std::uint32_t>(at);
      }
    }
    if (cell.count > 0)
      cell.extent_ns = static_cast<std::uint32_t>(end_ns - cell_start - cell.offset_ns);
    cell.busy_ns = static_cast<std::uint32_t>(busy_ns);
    cells_.push_back(cell);
  }
  row.grid_cells = cells_.size() - row.first_cell;
  std::uint64_t below = row.first_cell, below_count = row.grid_cells;
  for (int level = shift + 1; level < shift + row.grid_levels; ++level) {
    const std::uint64_t begin = cells_.size();
    const std::int64_t half_ns = std::int64_t{1} << (level - 1);
    // Cells of a level begin at multiples of their length, so the first may have a right half only.
    std::int64_t cell_start = floor_to(row.grid_start_ns, level);
    std::int64_t half_start = floor_to(row.grid_start_ns, level - 1);
    for (std::uint64_t i = 0; i < below_count; cell_start += 2 * half_ns) {
      Cell left, right;
      if (half_start == cell_start) {
        left = cells_[below + i++];
        half_start += half_ns;
      }
      if (i < below_count) {
        right = cells_[below + i++];
        half_start += half_ns;
      }
      cells_.push_back(joined(left, right, cell_start, level, row));
    }
    below = begin;
    below_count = cells_.size() - begin;
  }
}

// One cell from its two halves. A slice that was long for a half may be short for the whole.
LevelIndex::Cell LevelIndex::joined(const Cell& left, const Cell& right, std::int64_t cell_start_ns,
                                    int shift, const Row& row) const {
  const std::int64_t cell_ns = std::int64_t{1} << shift;
  const auto half_ns = static_cast<std::uint32_t>(cell_ns / 2);
  Cell cell = left;
  std::int64_t end_ns = static_cast<std::int64_t>(left.offset_ns) + left.extent_ns;
  const auto take = [&](std::int64_t offset, std::int64_t extent, std::uint32_t count,
                        std::int64_t busy, std::uint32_t longest) {
    if (cell.count == 0) cell.offset_ns = static_cast<std::uint32_t>(offset);
    end_ns = offset + extent;
    cell.count += count;
    cell.busy_ns += static_cast<std::uint32_t>(busy);
    if (cell.longest == kLong || dur_at(row.first + longest) > dur_at(row.first + cell.longest))
      cell.longest = longest;
  };
  const auto take_long = [&](std::uint32_t at) {
    const std::int64_t dur = dur_at(row.first + at);
    if (dur >= cell_ns)
      cell.long_one = at;
    else
      take(start_ns_[row.first + at] - cell_start_ns, dur, 1, dur, at);
  };
  cell.long_one = kLong;
  if (left.long_one != kLong) take_long(left.long_one);
  if (right.count > 0)
    take(static_cast<std::int64_t>(half_ns) + right.offset_ns, right.extent_ns, right.count,
         right.busy_ns, right.longest);
  if (right.long_one != kLong) take_long(right.long_one);
  if (cell.count > 0) cell.extent_ns = static_cast<std::uint32_t>(end_ns - cell.offset_ns);
  return cell;
}

std::span<const LevelIndex::Cell> LevelIndex::grid(const Row& row, int shift) const {
  std::uint64_t begin = row.first_cell, count = row.grid_cells;
  for (int level = row.grid_shift; level < shift; ++level) {
    begin += count;
    // Halves pair up at multiples of the larger cell.
    const bool first_is_right_half =
        floor_to(row.grid_start_ns, level) != floor_to(row.grid_start_ns, level + 1);
    count = (count + (first_is_right_half ? 1 : 0) + 1) / 2;
  }
  return cells_.rows().subspan(begin, count);
}

std::size_t LevelIndex::lower_bound(std::size_t row_number, std::int64_t time_ns) const {
  const Row& row = rows_[row_number];
  const auto begin = start_ns_.begin() + static_cast<std::ptrdiff_t>(row.first);
  return static_cast<std::size_t>(
      std::lower_bound(begin, begin + static_cast<std::ptrdiff_t>(row.count), time_ns) - begin);
}

std::pair<std::size_t, std::size_t> LevelIndex::range(std::size_t row, std::int64_t t0,
                                                      std::int64_t t1) const {
  std::size_t first = lower_bound(row, t0);
  const std::size_t last = lower_bound(row, t1);
  if (first > 0) {  // only the one before can reach into the window
    const LevelSlice before = slice(row, first - 1);
    if (before.start_ns + before.dur_ns > t0) --first;
  }
  return {first, std::max(first, last)};
}

std::int64_t LevelIndex::busy_ns(std::size_t row_number, std::size_t first,
                                 std::size_t last) const {
  const Row& row = rows_[row_number];
  const auto before = [&](std::size_t at) {
    if (at == 0) return std::int64_t{0};
    const std::size_t block = std::min(at / kFan, (row.count - 1) / kFan);
    std::int64_t busy = busy_[row.first_busy + block];
    for (std::size_t i = block * kFan; i < at; ++i) busy += dur_at(row.first + i);
    return busy;
  };
  return first >= last ? 0 : before(last) - before(first);
}

std::int64_t LevelIndex::busy_within_ns(std::size_t row, std::int64_t t0, std::int64_t t1) const {
  const auto [first, last] = range(row, t0, t1);
  if (first >= last) return 0;
  std::int64_t busy = busy_ns(row, first, last);
  const LevelSlice head = slice(row, first), tail = slice(row, last - 1);
  if (head.start_ns < t0) busy -= t0 - head.start_ns;
  if (tail.start_ns + tail.dur_ns > t1) busy -= tail.start_ns + tail.dur_ns - t1;
  return busy;
}

std::size_t LevelIndex::longest(std::size_t row_number, std::size_t first, std::size_t last) const {
  const Row& row = rows_[row_number];
  std::size_t best = first;
  const auto take = [&](std::size_t at) {
    const std::int64_t dur = dur_at(row.first + at), best_dur = dur_at(row.first + best);
    if (dur > best_dur || (dur == best_dur && at < best)) best = at;
  };
  // Single slices up to a whole group, then entries of ever higher levels, and down again.
  std::uint64_t begin = row.first_longest, count = (row.count + kFan - 1) / kFan;
  std::size_t from = first, to = last;
  bool slices = true;
  std::uint64_t level_begin = 0;
  while (from < to) {
    const auto each = [&](std::size_t at) { take(slices ? at : longest_[level_begin + at]); };
    while (from < to && from % kFan != 0) each(from++);
    while (from < to && to % kFan != 0) each(--to);
    if (from >= to) break;
    from /= kFan;
    to /= kFan;
    if (slices) {
      slices = false;
      level_begin = begin;
    } else {
      level_begin += count;
      count = (count + kFan - 1) / kFan;
    }
  }
  return best;
}

void LevelIndex::add_one(std::uint64_t position, std::vector<LevelCell>& into) const {
  const LevelSlice one = at_position(position);
  into.push_back({one.start_ns, one.dur_ns, one.dur_ns, one.id, 1});
}

void LevelIndex::add_cell(const Row& row, const Cell& cell, std::int64_t cell_start_ns,
                          std::vector<LevelCell>& into) const {
  if (cell.count > 0)
    into.push_back({cell_start_ns + cell.offset_ns, cell.extent_ns, cell.busy_ns,
                    id_[row.first + cell.longest], cell.count});
  if (cell.long_one != kLong) add_one(row.first + cell.long_one, into);
}

// Without a grid of that step: finds the end of each bucket, galloping from the last one.
void LevelIndex::add_buckets(std::size_t row_number, std::size_t first, std::size_t last,
                             std::int64_t step_ns, std::vector<LevelCell>& into) const {
  const Row& row = rows_[row_number];
  const int shift = shift_of(step_ns);
  const auto starts = start_ns_.begin() + static_cast<std::ptrdiff_t>(row.first);
  while (first < last) {
    const auto start_at = [&](std::size_t at) { return starts[static_cast<std::ptrdiff_t>(at)]; };
    const std::int64_t bucket_end = floor_to(start_at(first), shift) + step_ns;
    std::size_t inside = first, jump = 1;
    while (inside + jump < last && start_at(inside + jump) < bucket_end) {
      inside += jump;
      jump *= 2;
    }
    const auto end = static_cast<std::size_t>(
        std::lower_bound(starts + static_cast<std::ptrdiff_t>(inside + 1),
                         starts + static_cast<std::ptrdiff_t>(std::min(inside + jump, last)),
                         bucket_end) -
        starts);
    const bool long_last = dur_at(row.first + end - 1) >= step_ns;
    const std::size_t folded_end = long_last ? end - 1 : end;
    if (folded_end > first) {
      const LevelSlice head = slice(row_number, first), tail = slice(row_number, folded_end - 1);
      into.push_back({head.start_ns, tail.start_ns + tail.dur_ns - head.start_ns,
                      busy_ns(row_number, first, folded_end),
                      id_[row.first + longest(row_number, first, folded_end)],
                      static_cast<std::uint32_t>(folded_end - first)});
    }
    if (long_last) add_one(row.first + end - 1, into);
    first = end;
  }
}

void LevelIndex::cells(std::size_t row_number, std::int64_t t0, std::int64_t t1,
                       std::int64_t step_ns, std::size_t most_raw,
                       std::vector<LevelCell>& into) const {
  const Row& row = rows_[row_number];
  auto [first, last] = range(row_number, t0, t1);
  if (first >= last) return;
  if (last - first <= most_raw) {
    for (std::size_t i = first; i < last; ++i) add_one(row.first + i, into);
    return;
  }
  const int shift = shift_of(step_ns);
  step_ns = std::int64_t{1} << shift;
  // Whole buckets, so that a bucket looks the same wherever the window ends.
  const std::int64_t first_start = start_ns_[row.first + first];
  const std::int64_t last_start = start_ns_[row.first + last - 1];
  if (row.grid_shift >= 0 && shift >= row.grid_shift && shift < row.grid_shift + row.grid_levels) {
    const std::span<const Cell> level = grid(row, shift);
    const std::int64_t level_start = floor_to(row.grid_start_ns, shift);
    const auto from =
        static_cast<std::size_t>((floor_to(first_start, shift) - level_start) >> shift);
    const auto to = static_cast<std::size_t>((floor_to(last_start, shift) - level_start) >> shift);
    for (std::size_t i = from; i <= to && i < level.size(); ++i)
      add_cell(row, level[i], level_start + (static_cast<std::int64_t>(i) << shift), into);
    return;
  }
  first = lower_bound(row_number, floor_to(first_start, shift));
  last = lower_bound(row_number, floor_to(last_start, shift) + step_ns);
  add_buckets(row_number, first, last, step_ns, into);
}

std::size_t LevelIndex::column_bytes() const {
  return start_ns_.size() * (sizeof(std::int64_t) + 2 * sizeof(std::uint32_t));
}

std::size_t LevelIndex::index_bytes() const {
  return busy_.size() * sizeof(std::int64_t) + longest_.size() * sizeof(std::uint32_t) +
         cells_.size() * sizeof(Cell) + rows_.size() * sizeof(Row) +
         long_.size() * sizeof(long_[0]);
}

}  // namespace lanescope::view
