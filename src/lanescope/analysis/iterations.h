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

// A loop inside of an iteration, or before the first one.
struct InnerLoop {
  std::string name;  // "Optimizer.step#Adam.step"; "25 operators (aten::linear, aten::tanh, ...)"
  std::size_t count = 0;                     // its rounds
  std::int64_t time_ns = 0;                  // of all rounds, on the CPU
  bool runs_backward = false;                // a backward pass in each
  std::int64_t start_ns = 0, second_ns = 0;  // when the first round begins, and the second one
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
  // The loops inside of a middle iteration, if these are rounds of the outermost of several loops, or if an optimizer makes one step
  // after several backward passes.
  std::vector<InnerLoop> inner;
  // So many of them are one round of a longer loop, which is not taken for the iteration; 0: no such loop is known.
  std::size_t of_outer = 0;
  std::int64_t outer_ns = 0;  // its middle round, on the CPU
  std::string
      only_step;  // the only step of an optimizer in the recording, if something else marks the iterations
  // A loop that takes half or more of a long time before the first iteration, and runs operators in an order that iterations have,
  // too: another phase of a longer loop. count is 0: there is none.
  InnerLoop before;
  bool before_comes_again = false;  // the recording holds two or more rounds of the longer loop
};

// Only marks of `process`, if given. Nothing: nothing repeats, or it is unknown which
// work belongs to which time. O((slices + launches) log n) for each name that repeats. Any thread.
std::optional<Iterations> find_iterations(const Trace& trace, const LaunchLinks& links,
                                          ProcessId process = kNone<ProcessId>);

}  // namespace lanescope::analysis
