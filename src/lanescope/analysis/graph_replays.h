// Replays of CUDA graphs: when each held the device, and which operators its kernels come from.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// One cudaGraphLaunch, hipGraphLaunch, ... that started something in the trace.
struct GraphReplay {
  SliceId launch{};
  std::int64_t start_ns = 0, end_ns = 0;  // first start to last end of its work
  std::uint64_t kernel_count = 0;         // only kernels, no copies and memsets
};

// "cudaGraphLaunch" and similar calls of any vendor and version.
bool is_graph_launch(const Trace& trace, SliceId api_call);

// In order of start. O(n log n). Any thread.
std::vector<GraphReplay> find_graph_replays(const Trace& trace, const LaunchLinks& links);

// A kernel that graphs replayed and that operators launched elsewhere in the trace, with the same
// name, grid and block: the graph's kernel was captured from such a call.
struct BorrowedName {
  StringId kernel{};
  std::string_view op;          // the operator of all those calls; empty: they differ, or
                                // there is none
  SliceId example{};            // one of the replayed kernels
  std::uint64_t run_count = 0;  // replays
  std::int64_t gpu_ns = 0;      // sum of durations
};

// One entry per (kernel name, grid, block) that graphs replayed; most GPU time first, ties: by
// name. O(n log n). Any thread.
std::vector<BorrowedName> borrow_operator_names(const Trace& trace, const LaunchLinks& links,
                                                const std::vector<GraphReplay>& replays);

}  // namespace lanescope::analysis
