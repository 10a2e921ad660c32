// What samples of the distance of two clocks say together. A Row has apart_ns, by how much later one side
// ended, and together_ns, how long both were present.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "lanescope/analysis/steps.h"

namespace lanescope::ranks {

// Leaves the half of the rows, eight at least, in which all were present for the shortest time: who ends
// later by a share of a transfer is later by less in a short one.
template <class Row>
void keep_shortest(std::vector<Row>& rows) {
  constexpr std::size_t kLeastSamples = 8;
  if (rows.size() <= kLeastSamples) return;
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::pair(a.together_ns, a.apart_ns) < std::pair(b.together_ns, b.apart_ns);
  });
  rows.resize(std::max(kLeastSamples, (rows.size() + 1) / 2));
}

// ns.
template <class Row>
std::int64_t median_of(const std::vector<Row>& rows, std::int64_t Row::*what) {
  std::vector<std::int64_t> values;
  for (const Row& row : rows) values.push_back(row.*what);
  return analysis::lower_median(std::move(values));
}

// ns: three standard errors of the median of apart_ns, by the median absolute deviation. What is the same
// in all rows is no spread.
template <class Row>
double spread_apart(const std::vector<Row>& rows) {
  const std::int64_t usual = median_of(rows, &Row::apart_ns);
  std::vector<std::int64_t> away;
  for (const Row& row : rows) away.push_back(std::abs(row.apart_ns - usual));
  return 3 * 1.4826 * static_cast<double>(analysis::lower_median(std::move(away))) /
         std::sqrt(static_cast<double>(rows.size()));
}

}  // namespace lanescope::ranks
