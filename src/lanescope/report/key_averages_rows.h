// Which rows of the table of key_averages are shown, and in which order: the same for text, JSON and
// CSV.
#pragma once
#include <string>
#include <vector>

#include "lanescope/analysis/key_averages.h"
#include "lanescope/base/result.h"
#include "lanescope/report/key_averages_table.h"

namespace lanescope::report {

// Largest first; rows of equal value keep their order. An empty key: the order of `table`. Borrows
// the rows. kInvalidArgument: no key of table_sort_keys(). O(n log n).
Result<std::vector<const analysis::KeyAverage*>> sorted_rows(const analysis::KeyAverages& table,
                                                             const std::string& sort_by);

// Those that TableOptions::row_limit and top_level_events_only leave.
std::vector<const analysis::KeyAverage*> shown_rows(
    const std::vector<const analysis::KeyAverage*>& rows, const TableOptions& options);

// A total over the calls of the row, as torch divides: in doubles. No calls: 0.
double average_us(double total_us, const analysis::KeyAverage& row);

}  // namespace lanescope::report
