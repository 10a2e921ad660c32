// The trace that a replay describes: the same events at the times that they would have.
#pragma once
#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"
#include "lanescope/simulate/replay.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::simulate {

// Events of CPU threads keep their order and nesting, GPU work keeps its stream; after overlap-copies,
// copies have new ones, a stream for each direction. Times between two moments of the graph move in
// proportion. Events that a change removed have no duration. kUnsupported: other work of one stream
// would overlap that did not overlap before. O(n log n). Shares all but times with graph.trace.
Result<Trace> simulated_trace(const StepGraph& graph, const Replay& replay);

}  // namespace lanescope::simulate
