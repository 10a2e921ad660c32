// A roofline's calls as a table: equal calls, by the kernel that ran, in one row.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/analysis/roofline.h"

namespace lanescope::analysis {

// Nanoseconds. Columns as docs/definitions.md#roofline says.
struct RooflineRow {
  std::uint32_t work = 0;                        // index into Roofline::works
  SliceId op{}, kernel{};                        // of the longest call
  RooflineClass kind = RooflineClass::kUnknown;  // of the longest call
  std::uint64_t calls = 0;
  std::int64_t time_ns = 0;                 // the calls' times, added up
  std::int64_t median_ns = 0;               // the lower one of an even number
  double flops_per_s = 0, bytes_per_s = 0;  // of all of them; 0 of no time
  // Floors over times; absent of short calls, where the peak is not known, and where this would be
  // more than 1.
  std::optional<double> achieved_ratio;
  bool is_above_peak = false;  // it would be more than 1
  // Its rate over the best of the rows that multiply in the same type (or, of operators that do
  // not multiply, over the best of all of those): what can be said of a GPU nobody knows. Short
  // calls are neither compared nor compared with.
  std::optional<double> of_best_ratio;
};

// By time, then name of the operator. O(n log n). Any thread.
std::vector<RooflineRow> compute_roofline_rows(const Trace& trace, const Roofline& roofline);

}  // namespace lanescope::analysis
