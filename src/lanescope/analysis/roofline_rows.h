// A roofline as a table: equal calls with the same kernel are one row.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/analysis/roofline.h"

namespace lanescope::analysis {

// Nanoseconds. Columns as docs/definitions/kernels.md#roofline says.
struct RooflineRow {
  std::uint32_t work = 0;                        // index into Roofline::works
  SliceId op{}, kernel{};                        // of the longest call
  RooflineClass kind = RooflineClass::kUnknown;  // of the longest call
  std::uint64_t calls = 0;
  std::int64_t time_ns = 0;                 // sum of the calls' times
  std::int64_t median_ns = 0;               // for an even number, the lower one
  double flops_per_s = 0, bytes_per_s = 0;  // of all calls; 0: no time
  // Floors over times; absent: short calls, an unknown peak, or more than 1.
  std::optional<double> achieved_ratio;
  bool is_above_peak = false;  // it would be more than 1
  // For GPUs with unknown peaks: its rate over that of the best row that multiplies in the same
  // type. Rows that do not multiply are compared with the best such row. Short calls are left out.
  std::optional<double> of_best_ratio;
};

// By time, then name of the operator. O(n log n). Any thread.
std::vector<RooflineRow> compute_roofline_rows(const Trace& trace, const Roofline& roofline);

}  // namespace lanescope::analysis
