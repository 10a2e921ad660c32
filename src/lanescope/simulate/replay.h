// Replays a dependency graph: each moment comes as early as its dependencies allow.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lanescope/analysis/steps.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::simulate {

struct Replay {
  std::vector<std::int64_t> time_ns;     // by point
  std::vector<std::uint32_t> binding;    // by point: the edge that decided its time; kNoIndex: none
  std::vector<analysis::Window> steps;   // of all steps, as in compute_step_windows()
  std::vector<std::uint32_t> step_ends;  // the point that ends each step
};

// `edges` are those of the graph, changed or not. Linear. Any thread.
Replay replay(const StepGraph& graph, std::span<const Edge> edges);
// The same, but reuses the memory of `result`: allocating it is most of a replay's cost.
void replay_into(const StepGraph& graph, std::span<const Edge> edges, Replay& result);
// The next two replay the graph's own edges: the first without unexplained time, the second with the weights that
// take_out_recording() would leave. Edges are copied only for the second one, and only if the trace launches CUDA graphs.
void replay_without_slack(const StepGraph& graph, Replay& result);
void replay_without_recording(const StepGraph& graph, double share, Replay& result);

// Median of the steady steps.
std::int64_t step_ns(const StepGraph& graph, const Replay& replay);
// The length of all steady steps together. Includes the time between neighbouring steady steps.
std::int64_t steady_ns(const StepGraph& graph, const Replay& replay);
// Time in which the main device worked inside steady steps, per step.
std::int64_t busy_ns_per_step(const StepGraph& graph, const Replay& replay);

// What the time on the critical path is spent on.
enum class PathKind : std::uint8_t {
  kHost,           // Python and operators on the CPU
  kCall,           // calls of the runtime or driver on the CPU
  kCompute,        // kernels and memsets
  kCommunication,  // kernels of collectives
  kCopy,
  kDelay,        // from a launch to its start, between GPU work, from GPU work to a waiting CPU
  kData,         // waiting for the DataLoader
  kUnexplained,  // the part of delays that is longer than usual, and what nothing explains
};
inline constexpr std::size_t kPathKindCount = 8;
const char* path_kind_name(PathKind kind);  // "python_and_operators", ...
const char* path_kind_text(PathKind kind);  // "Python and operators", ...

// A stretch of the critical path. Its times are those of the replay.
struct PathPiece {
  std::int64_t start_ns = 0, end_ns = 0;
  PathKind kind = PathKind::kHost;
  // The event in which the time is spent: GPU work, a call, or a thread's innermost event. For a
  // delay: the event that waited. kNone: no event.
  SliceId slice = kNone<SliceId>;
};
// Follows the dependencies that decided when the last steady step ended, back to the start of the first
// steady step. The last piece comes first. Leaves out pieces in steps that are not steady.
std::vector<PathPiece> critical_pieces(const StepGraph& graph, std::span<const Edge> edges,
                                       const Replay& replay);
// The same, but passes the pieces to `visit` one by one: there may be as many pieces as events.
void visit_critical_pieces(const StepGraph& graph, std::span<const Edge> edges,
                           const Replay& replay,
                           const std::function<void(const PathPiece&)>& visit);

struct PathOwner {
  std::string name;
  PathKind kind = PathKind::kHost;
  std::int64_t time_ns = 0;
};

// The sum of the pieces. An owner is the operator that launched the work or made the call.
struct CriticalPath {
  std::array<std::int64_t, kPathKindCount> time_ns{};
  std::int64_t total_ns = 0;
  std::size_t steps = 0;
  std::vector<PathOwner> owners;  // longest first, ties by name
  std::int64_t of(PathKind kind) const { return time_ns[static_cast<std::size_t>(kind)]; }
};
// Whether CriticalPath::owners is filled. It takes as long as the rest.
enum class PathOwners : std::uint8_t { kNamed, kLeftOut };
CriticalPath critical_path(const StepGraph& graph, std::span<const Edge> edges,
                           const Replay& replay, PathOwners named = PathOwners::kNamed);

// What bounds the step: the largest of GPU work, CPU, copies, communication, data and delays on
// the critical path.
enum class Limit : std::uint8_t { kCpu, kGpu, kCommunication, kCopies, kData, kDelays };
Limit limit_of(const CriticalPath& path);
const char* limit_name(Limit limit);

}  // namespace lanescope::simulate
