// All names of device work in a trace with their cost. Each name is parsed once.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/model/trace.h"
#include "lanescope/names/kernel_name.h"

namespace lanescope::analysis {

struct KernelNameTotal {
  StringId raw{};  // the name as the trace has it
  names::KernelName name;
  std::int64_t count = 0;
  std::int64_t total_ns = 0;  // sum of durations
};

// In nanoseconds. Sums of durations: time in which two streams work at once counts twice.
struct KernelNameTotals {
  std::vector<KernelNameTotal> rows;  // largest total first, then by raw name
  std::int64_t total_ns = 0;
  std::int64_t named_ns = 0;  // of rows whose name is known
};

// Kernels, copies and memsets (CategoryKind, is_device_work). One pass over slices, one parse per
// name. Any thread.
KernelNameTotals compute_kernel_name_totals(const Trace& trace);

}  // namespace lanescope::analysis
