// The trace that a replay describes: the same events at the times that they would have.
#pragma once
#include <string>
#include <string_view>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"
#include "lanescope/simulate/replay.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::simulate {

// Events of CPU threads keep their order and nesting. GPU work keeps its stream. Exception: if work of a
// stream would now overlap (overlap-copies), its copies to the GPU and its copies to the CPU move to two
// new streams. A time between two moments of the graph keeps its relative place between them. Events that
// a change removed have no duration. kUnsupported: other work of one stream would overlap, although it
// did not overlap in the recording. O(n log n). Shares the columns that do not change with graph.trace.
// The trace says in its metadata (kSimulatedBy) which `changes` it shows, after those that graph.trace shows already.
Result<Trace> simulated_trace(const StepGraph& graph, const Replay& replay,
                              std::string_view changes);
// "lanescope whatif: remove-sync; cpu 2x"; empty: the trace was recorded.
std::string simulated_by(const Trace& trace);

}  // namespace lanescope::simulate
