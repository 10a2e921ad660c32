// How close each operator came to the peak of the GPU.
//
// Problem: a busy GPU may still be used badly. Idea: an operator's shapes give the least operations
// and bytes; the data sheet gives the least time for them; that time over the measured time is the
// achieved share. Example: C = A B of 4096 x 4096 in bf16 on an H200: 137.4 G operations, 0.139 ms
// at 989.5 T/s; 100.7 MB, 0.021 ms at 4.8 TB/s. Measured 0.169 ms: compute-limited, 82 % achieved.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lanescope/analysis/device_work.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/matrix_units.h"
#include "lanescope/analysis/operator_work.h"
#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/analysis/steps.h"
#include "lanescope/model/gpu_catalog.h"
#include "lanescope/model/gpu_device.h"

namespace lanescope::analysis {

enum class RooflineClass : std::uint8_t {
  kCompute,  // the operations take longer than the bytes
  kMemory,   // the bytes take longer
  kShort,    // shorter than kShortCallNs: mostly start and end
  kUnrated,  // modelled, but the GPU has no known peak for it
  kUnknown,  // no model of the operator, no inputs, or launched by a graph
};
inline constexpr std::size_t kRooflineClassCount = 5;
inline constexpr std::int64_t kShortCallNs = 5'000;
const char* roofline_class_name(RooflineClass kind);  // "compute", "memory", ...

// One call of an operator that has a model, and the GPU work it started.
struct RooflineCall {
  SliceId op{};
  SliceId kernel{};          // the longest piece of its work
  std::uint32_t work = 0;    // index into Roofline::works
  std::int64_t time_ns = 0;  // union of its work
  std::int64_t start_ns = 0, end_ns = 0;
  MatrixUnits matrix_units = MatrixUnits::kUnknown;  // of `kernel`
  RooflineClass kind = RooflineClass::kUnknown;
  double compute_floor_ns = 0, memory_floor_ns = 0;  // 0: the peak is unknown
  double floor_ns() const {
    return compute_floor_ns > memory_floor_ns ? compute_floor_ns : memory_floor_ns;
  }
  // Limited to 1: data in the cache can be faster than memory.
  double achieved_ratio() const {
    const double ratio = time_ns > 0 ? floor_ns() / static_cast<double>(time_ns) : 0;
    return ratio < 1 ? ratio : 1;
  }
  // Faster than the least time of the model: bytes came from a cache, or the model is wrong.
  bool is_above_peak() const { return floor_ns() > static_cast<double>(time_ns); }
};

struct RooflineTotals {
  std::uint64_t calls = 0;             // for kUnknown: pieces of work
  std::int64_t time_ns = 0;            // union over the wall
  double floor_ns = 0;                 // sum of floors, each at most the call's time
  std::uint64_t above_peak_calls = 0;  // of `calls`
  std::int64_t above_peak_ns = 0;      // their times, summed
  double flops = 0, bytes = 0;
};

// Nanoseconds, for the work that began in the windows, without communication and copies to and from
// other memories. Defined in docs/definitions/kernels.md#roofline.
struct Roofline {
  GpuDevice device;               // empty: the trace does not describe it
  const GpuSpec* spec = nullptr;  // null: not in the catalog
  std::optional<double> bandwidth_bytes_per_s;
  std::vector<OperatorWork> works;  // one per distinct call: name and inputs
  std::vector<RooflineCall> calls;  // by start of their first work
  // For each piece of the timeline's work, its call or kNoCall.
  std::vector<std::uint32_t> call_of;
  static constexpr std::uint32_t kNoCall = ~std::uint32_t{0};
  std::array<RooflineTotals, kRooflineClassCount> totals;
  std::int64_t busy_ns = 0;  // union of all of them
  bool has_shapes = false;   // at least one operator with work has recorded inputs
  const RooflineTotals& of(RooflineClass kind) const {
    return totals[static_cast<std::size_t>(kind)];
  }
};

// Operations a second for a type, on the units that the kernel used. Absent: not known.
std::optional<double> peak_rate(const GpuSpec& spec, std::string_view type, MatrixUnits units);

// `windows` are disjoint and in order. Each distinct call is parsed once. O(n log n). Any thread.
Roofline compute_roofline(const Trace& trace, const LaunchLinks& links, const SliceNesting& nesting,
                          const DeviceTimeline& timeline, std::span<const Window> windows);

// The device's entry in deviceProperties; without one, the first if all are equal. Empty: none.
GpuDevice find_device(const Trace& trace, std::int64_t device);

}  // namespace lanescope::analysis
