// Describes changes to a program and applies them to its dependency graph. docs/definitions/whatif.md#changes.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/analysis/steps.h"
#include "lanescope/base/result.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::simulate {

// `pin` takes its rate from pinned copies of at least this many bytes.
inline constexpr std::int64_t kLeastRatedCopyBytes = 256 * 1024;
// If there are none: this part of the PCIe link that the GPU's data sheet names. Measured on an H200 (docs/measurements/whatif.md).
inline constexpr double kPinnedPartOfLink = 0.86;
bool is_copy_to_device(std::string_view name);  // by the name of a copy on the GPU

enum class ChangeKind : std::uint8_t {
  kSpeed,          // speed NAME 2x
  kCpu,            // cpu 1.5x
  kRemove,         // remove NAME
  kRemoveSync,     // remove-sync [PATTERN]
  kNoProfiler,     // no-profiler [MICROSECONDS]
  kCudaGraph,      // cuda-graph
  kPin,            // pin [GB/s]
  kOverlapCopies,  // overlap-copies
  kFuse,           // fuse NAME
  kGpu,            // gpu 1.5x, gpu NAME
  kCopies,         // copies 2x
  kCommunication,  // communication 2x
  kLoader,         // loader 2x
  kWorkers,        // workers N, workers N from M
  kBatch,          // batch 2x
};

struct Change {
  ChangeKind kind{};
  std::string text;  // as given
  std::string name;  // NAME or PATTERN; empty: all
  // kRemove: removes these events instead of those that `name` fits. kRemoveSync: also removes the waits of these calls, which wait
  // for a copy to the GPU.
  std::vector<SliceId> slices = {};
  // kFuse: each of these becomes one kernel, instead of those of `name`. In order of time, on one stream each.
  std::vector<std::vector<SliceId>> chains = {};
  // kRemove: removes these windows of a thread instead (disjoint, in order). GPU work that was launched in them stays.
  TrackId thread = kNone<TrackId>;
  std::vector<analysis::Window> windows = {};
  double factor = 1;
  bool has_fewer_kernels = false;  // gpu: the gaps between kernels shrink as much as the kernels
  // no-profiler: us per event; pin: GB/s; workers: N
  std::optional<double> number;
  std::optional<double> from;  // workers: M, how many there are now
};

// The error kInvalidArgument says what was expected and what was found.
Result<Change> parse_change(std::string_view text);

// What a change did, and what it could not know.
struct Applied {
  std::uint64_t count = 0;         // events that it changed
  std::vector<std::string> notes;  // sentences for the user
  std::string assumed;             // a number that the trace does not hold, such as "54 GB/s"
};

// Removes from `edges` what recording cost the program. `share`: how much of the fitted cost;
// values below and above 1 show how much a result depends on it. Linear.
void take_out_recording(const StepGraph& graph, std::span<Edge> edges, double share = 1);

// Changes `edges`, a copy of graph.edges. kInvalidArgument: nothing in the trace fits the change.
// kUnsupported: the change would be wrong for this program; the error says why. Linear.
Result<Applied> apply_change(const StepGraph& graph, const analysis::SliceNesting& nesting,
                             const Change& change, std::vector<Edge>& edges);

}  // namespace lanescope::simulate
