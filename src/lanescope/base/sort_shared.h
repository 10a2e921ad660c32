// Sorting rows on several threads.
//
// Idea: sort each part alone. If the parts overlap afterwards, choose limits from samples of the rows. A range is all rows between
// two limits, from all parts. The threads copy and sort one range after the other. Cost: O(n) if the rows are in order, else
// O(n log n) and memory for a second copy of the rows while it runs.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "lanescope/base/share_work.h"
#include "lanescope/base/unset_array.h"

namespace lanescope {

// Sorts the first `count` rows. `threads` 0 means usual_threads(). `part_rows`: how many rows a thread takes at once. No two rows
// may be equal, so that the result is the same for any `threads` and `part_rows`.
template <typename Row>
void sort_shared(UnsetArray<Row>& all, std::size_t count, unsigned threads,
                 std::size_t part_rows = 1u << 16) {
  constexpr std::size_t kMostParts = 512;
  const std::span<Row> rows = all.rows().first(count);
  if ((threads == 0 ? usual_threads() : threads) == 1 || count <= part_rows) {
    if (!std::is_sorted(rows.begin(), rows.end())) std::sort(rows.begin(), rows.end());
    return;
  }
  part_rows = std::max(part_rows, (count + kMostParts - 1) / kMostParts);
  const std::size_t parts = (count + part_rows - 1) / part_rows;
  const auto part = [&](std::size_t i) {
    return rows.subspan(i * part_rows, std::min(part_rows, count - i * part_rows));
  };
  share_work(parts, threads, [&](std::size_t i) {
    const std::span<Row> of = part(i);
    if (!std::is_sorted(of.begin(), of.end())) std::sort(of.begin(), of.end());
  });
  bool in_order = true;
  for (std::size_t i = 1; i < parts; ++i) in_order &= !(part(i).front() < part(i - 1).back());
  if (in_order) return;

  constexpr std::size_t kSamples = 16;  // of a part
  std::vector<Row> samples;
  for (std::size_t i = 0; i < parts; ++i)
    for (std::size_t k = 0; k < kSamples; ++k)
      samples.push_back(part(i)[k * part(i).size() / kSamples]);
  std::sort(samples.begin(), samples.end());
  std::vector<Row> limits;  // each begins a range; one more range is before the first
  for (std::size_t i = kSamples; i < samples.size(); i += kSamples) limits.push_back(samples[i]);
  const std::size_t ranges = limits.size() + 1;
  // begins[part * (ranges + 1) + range]: where the range begins in the part
  std::vector<std::size_t> begins(parts * (ranges + 1), 0);
  share_work(parts, threads, [&](std::size_t i) {
    const std::span<Row> of = part(i);
    std::size_t* const at = begins.data() + i * (ranges + 1);
    for (std::size_t range = 1; range < ranges; ++range)
      at[range] = static_cast<std::size_t>(
          std::lower_bound(of.begin() + static_cast<std::ptrdiff_t>(at[range - 1]), of.end(),
                           limits[range - 1]) -
          of.begin());
    at[ranges] = of.size();
  });
  std::vector<std::size_t> first(ranges + 1, 0);  // where each range begins in the result
  for (std::size_t range = 0; range < ranges; ++range) {
    first[range + 1] = first[range];
    for (std::size_t i = 0; i < parts; ++i) {
      const std::size_t* const at = begins.data() + i * (ranges + 1) + range;
      first[range + 1] += at[1] - at[0];
    }
  }
  UnsetArray<Row> sorted(all.size());
  share_work(ranges, threads, [&](std::size_t range) {
    Row* to = sorted.data() + first[range];
    for (std::size_t i = 0; i < parts; ++i) {
      const std::size_t* const at = begins.data() + i * (ranges + 1) + range;
      to = std::copy(part(i).data() + at[0], part(i).data() + at[1], to);
    }
    std::sort(sorted.data() + first[range], to);
  });
  all = std::move(sorted);
}

}  // namespace lanescope
