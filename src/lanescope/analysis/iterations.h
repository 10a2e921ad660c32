// The iterations of a recording that marks no steps: what repeats in it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

enum class IterationMark : std::uint8_t {
  kRangeEnd,    // from the end of one range to the end of the next: Optimizer.step#...
  kRangeStart,  // from the start of one range or operator to the start of the next
  kWait,        // from the end of one wait of the CPU to the end of the next
};

// Nanoseconds since Trace::base_time_ns(). docs/definitions/steps.md#found-iterations.
struct Iterations {
  struct Range {
    SliceId mark =
        kNone<SliceId>;  // what begins it (kRangeStart; little may come before) or ends it; the
                         // last step in it where several optimizers make an iteration
    std::int64_t start_ns = 0, end_ns = 0;
  };
  IterationMark kind = IterationMark::kRangeStart;
  std::string mark;   // "Optimizer.step#SGD.step", "cudaStreamSynchronize", "aten::mm"
  std::string owner;  // of a wait: its outermost operator; of optimizer steps: how many, or empty
  std::size_t waits = 1;      // kWait: of an iteration
  std::vector<Range> ranges;  // in order, each begins where the one before ends; two or more
};

// Only marks of `process`, if given. Nothing: nothing repeats, or it is unknown which
// work belongs to which time. O((slices + launches) log n) for each name that repeats. Any thread.
std::optional<Iterations> find_iterations(const Trace& trace, const LaunchLinks& links,
                                          ProcessId process = kNone<ProcessId>);

}  // namespace lanescope::analysis
