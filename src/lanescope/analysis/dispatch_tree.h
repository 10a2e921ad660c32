// The dispatch chain: step -> annotation -> operator -> API call -> device work, with
// equal neighbours folded.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

struct DispatchTreeOptions {
  std::optional<std::int64_t> step =
      {};               // only ProfilerStep#N, and what other threads began during it
  std::string op = {};  // only subtrees under slices of this name; combines with `step`
  int max_depth = 64;   // levels under a root, 1 to 256; deeper slices are counted, not shown
  bool python_frames = false;  // include Python frames of with_stack
  bool fold = true;            // equal siblings in a row become one node
};

// One slice, or `count` slices whose subtrees have the same names: neighbours, or slices at the
// same place in folded parents. Nanoseconds; each number is a sum over the slices unless its name
// says otherwise. docs/definitions/dispatch_tree.md.
struct DispatchNode {
  std::string name;  // "ProfilerStep*" for folded steps
  CategoryKind kind = CategoryKind::kOther;
  SliceId first = kNone<SliceId>;  // the first of them
  std::uint64_t count = 1;
  // of the first slice: since its step began; outside of steps, since the window began
  std::int64_t start_ns = 0;
  std::int64_t total_ns = 0, median_total_ns = 0;
  std::int64_t self_ns = 0;  // total minus direct children on the thread; device work has none
  // device work launched in them and below; for device work its duration
  std::int64_t device_ns = 0;
  // CPU: median time from the end of the sibling before (or the parent's start) to the start.
  // Negative: they overlap.
  std::optional<std::int64_t> median_gap_ns;
  // Device work: median time from the start of the launch call to the start of the work.
  std::optional<std::int64_t> median_queue_ns;
  std::optional<std::int64_t> stream;  // device work
  std::uint64_t hidden_count = 0;      // slices below max_depth
  std::vector<DispatchNode> children;

 private:
  friend class DispatchTreeBuilder;
  std::uint64_t per_parent_ = 1;  // how many in one instance of the parent
  std::vector<std::int64_t> totals_, gaps_, queues_;
};

struct DispatchThread {
  TrackId track{};
  std::string name;  // "thread 566 (python3)", or the part that the file has
  std::vector<DispatchNode> roots;
};

// Device work that no call in the trace launched, by name.
struct UnlaunchedWork {
  std::string name;
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
};

struct DispatchTree {
  std::vector<DispatchThread> threads;  // the steps' thread first, then in the order of the file
  std::vector<UnlaunchedWork>
      unlaunched;  // longest total first; inside the chosen step or the whole trace
  std::vector<std::int64_t> steps;  // numbers of all steps in the trace
};

// kInvalidArgument: no such step (the message lists the steps), no slice with that name (it gives
// the closest names), max_depth out of range. O(n log n); memory in proportion to the folded
// tree. Any thread.
Result<DispatchTree> compute_dispatch_tree(const Trace& trace,
                                           const DispatchTreeOptions& options = {});

}  // namespace lanescope::analysis
