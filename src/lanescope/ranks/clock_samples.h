// Estimates how far two clocks are apart from many samples. A Row has apart_ns (how much later one side ended)
// and together_ns (how long both were present).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "lanescope/analysis/steps.h"
#include "lanescope/base/sort_rows.h"

namespace lanescope::ranks {

// By length, then distance: the same order wherever the rows come from.
template <class Row>
void sort_samples(std::vector<Row>& rows) {
  sort_rows(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::pair(a.together_ns, a.apart_ns) < std::pair(b.together_ns, b.apart_ns);
  });
}

// Keeps the half of the rows, eight at least, with the shortest together_ns. Why: a rank that ends later by a
// share of the transfer is less late when the transfer is short. Then drops rows that are more than a quarter
// longer than the median of these, so that all have about the same length. Sorted.
template <class Row>
void keep_shortest(std::vector<Row>& rows) {
  constexpr std::size_t kLeastSamples = 8;
  sort_samples(rows);
  if (rows.size() > kLeastSamples) rows.resize(std::max(kLeastSamples, (rows.size() + 1) / 2));
  if (rows.empty()) return;
  const std::int64_t usual = rows[(rows.size() - 1) / 2].together_ns;
  std::erase_if(rows, [&](const Row& row) { return row.together_ns - usual > usual / 4; });
}

// ns.
template <class Row>
std::int64_t median_of(const std::vector<Row>& rows, std::int64_t Row::*what) {
  std::vector<std::int64_t> values;
  for (const Row& row : rows) values.push_back(row.*what);
  return analysis::lower_median(std::move(values));
}

// ns: three standard errors of the median of apart_ns, by the median absolute deviation. A difference
// that all rows share does not count as spread.
template <class Row>
double spread_apart(const std::vector<Row>& rows) {
  const std::int64_t usual = median_of(rows, &Row::apart_ns);
  std::vector<std::int64_t> away;
  for (const Row& row : rows) away.push_back(std::abs(row.apart_ns - usual));
  return 3 * 1.4826 * static_cast<double>(analysis::lower_median(std::move(away))) /
         std::sqrt(static_cast<double>(rows.size()));
}

// How far two clocks are apart, from the origins of their files and the shift between these. Origins that no
// clock has, as damaged files may, count as equal.
inline std::int64_t clock_offset_ns(std::int64_t origin_ns, std::int64_t reference_ns,
                                    std::int64_t shift_ns) {
  constexpr std::int64_t kFarthest = std::int64_t{1} << 61;
  std::int64_t apart = 0;
  if (__builtin_sub_overflow(origin_ns, reference_ns, &apart) ||
      __builtin_add_overflow(apart, shift_ns, &apart) || apart > kFarthest || apart < -kFarthest)
    return shift_ns;
  return apart;
}

// How much later one side ends for each ns that a collective takes longer, and the standard error of that.
struct LeavingLine {
  bool known = false;
  double slope = 0, error = 0;  // ns per ns of together_ns
};

// Least squares. Not known: fewer than 12 rows, or lengths that differ by less than 10 % of their mean
// (standard deviation). Ranks leave at slightly random times, which also changes the lengths; with nearly equal
// lengths that would look like a slope. Sorts the rows, so that sums do not depend on where they come from.
template <class Row>
LeavingLine fit_leaving_line(std::vector<Row>& rows) {
  constexpr std::size_t kLeastRows = 12;
  constexpr double kLeastSpread = 0.1;
  LeavingLine line;
  if (rows.size() < kLeastRows) return line;
  sort_samples(rows);
  const auto count = static_cast<double>(rows.size());
  double mean_length = 0, mean_apart = 0;
  for (const Row& row : rows) {
    mean_length += static_cast<double>(row.together_ns) / count;
    mean_apart += static_cast<double>(row.apart_ns) / count;
  }
  double lengths = 0, both = 0;
  for (const Row& row : rows) {
    const double length = static_cast<double>(row.together_ns) - mean_length;
    lengths += length * length;
    both += length * (static_cast<double>(row.apart_ns) - mean_apart);
  }
  const double least = kLeastSpread * mean_length;
  if (lengths < 1 || lengths < count * least * least) return line;
  line.known = true;
  line.slope = both / lengths;
  double left = 0;  // squares of what the line does not explain
  for (const Row& row : rows) {
    const double away = static_cast<double>(row.apart_ns) - mean_apart -
                        line.slope * (static_cast<double>(row.together_ns) - mean_length);
    left += away * away;
  }
  line.error = std::sqrt(left / (count - 2) / lengths);
  return line;
}

}  // namespace lanescope::ranks
