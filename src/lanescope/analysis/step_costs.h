// The cost of one trace's steady steps, grouped so that another trace has comparable groups.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lanescope/analysis/device_work.h"
#include "lanescope/analysis/gaps.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/analysis/steps.h"
#include "lanescope/analysis/wall_partition.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// Device work of one name that one operator launched with one set of input shapes. Sums over the
// steady steps. docs/definitions/comparing.md.
struct WorkGroup {
  std::string name;  // raw
  std::string op;    // innermost operator; empty: launched outside of operators
  std::string dims;  // its "Input Dims" as in the file; empty: not recorded
  WorkClass work = WorkClass::kCompute;
  std::uint64_t count = 0;   // pieces at least partly in the windows
  std::int64_t time_ns = 0;  // sum of their parts inside the windows
  SliceId longest = kNone<SliceId>;
};

// Idle time with one cause before one kind of work.
struct IdleGroup {
  IdleCause cause = IdleCause::kUnknown;
  std::string before;  // operator that launched the next work, else the work's raw name;
                       // empty: no work followed
  std::uint64_t count = 0;
  std::int64_t time_ns = 0;
  SliceId next_work = kNone<SliceId>;  // after the longest of these gaps
};

enum class CpuClass : std::uint8_t {
  kOperator,  // operators
  kCall,      // CUDA calls that do not wait
  kWait,      // calls in which the CPU may wait for the device (is_blocking_call)
  kRange,     // annotations: their self time is code without events, such as Python without stacks
  kPython,    // frames, where stacks were recorded
};
inline constexpr std::size_t kCpuClassCount = 5;

// Self time of the CPU slices of one name that began in the steady steps.
struct CpuGroup {
  CpuClass cpu = CpuClass::kOperator;
  std::string name;  // ProfilerStep#7 counts as ProfilerStep*
  std::uint64_t count = 0;
  std::int64_t self_ns = 0;
};

struct StepCosts {
  std::int64_t step_count = 0;
  WallPartition wall;  // sums over the steps
  std::array<std::int64_t, kIdleCauseCount> idle{};
  std::int64_t cpu_wall_ns = 0;  // CPU ranges of the steps
  std::vector<WorkGroup> work;   // by (name, op, dims)
  std::vector<IdleGroup> gaps;   // by (cause, before)
  std::vector<CpuGroup> cpu;     // by (class, name)
};

struct StepCostsInput {
  const Trace& trace;
  const LaunchLinks& links;
  const SliceNesting& nesting;     // with Python frames if they are included
  const DeviceTimeline* timeline;  // null: no device worked
  const Gaps* gaps;
  std::span<const Window> windows;      // of the steady steps on the device: disjoint, in order
  std::span<const Window> cpu_windows;  // of the same steps on the CPU: disjoint, in order
  std::int64_t step_count;
};

// O(n log n). Any thread.
StepCosts compute_step_costs(const StepCostsInput& input);

}  // namespace lanescope::analysis
