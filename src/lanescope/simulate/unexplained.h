// What on the critical path the graph cannot explain, and which kind of thing it is. docs/definitions/whatif.md#not-explained.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/simulate/replay.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::simulate {

enum class NotExplained : std::uint8_t {
  kCollective,  // a collective began later than its launch and its stream explain
  kGraphNode,   // a node of a CUDA graph, or the work after one, began later
  kNoLaunch,    // GPU work whose launch is not in the trace
  kLateWork,    // other GPU work began later
  kLateCall,    // a call returned later than the GPU work that it waited for
  kOther,       // time of a thread that nothing explains
};
const char* not_explained_name(NotExplained kind);  // "collective", ...

struct UnexplainedTime {
  NotExplained kind{};
  std::int64_t time_ns = 0;          // of all steady steps
  SliceId longest = kNone<SliceId>;  // the event with the longest single piece
};

// Most time first. O(edges).
std::vector<UnexplainedTime> unexplained_times(const StepGraph& graph, const Replay& recorded);

}  // namespace lanescope::simulate
