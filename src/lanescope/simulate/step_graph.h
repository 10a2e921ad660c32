// The dependency graph of a recording: moments of CPU threads and GPU work, and what each had to
// wait for. docs/definitions/whatif.md#dependency-graph.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lanescope/analysis/device_work.h"
#include "lanescope/analysis/host_timeline.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/steps.h"
#include "lanescope/model/trace.h"

namespace lanescope::simulate {

enum class EdgeKind : std::uint8_t {
  kFixed,       // the time of the recording: nothing in the trace explains it
  kHost,        // a thread's own time: Python, operators, calls
  kData,        // the thread is in the DataLoader's range: it waits for workers, or runs Python
  kOtherHost,   // the thread waits for another thread: no time of its own
  kHandOver,    // from one thread to another, such as into backward and back
  kLaunch,      // launch call -> start of its GPU work
  kStream,      // end of GPU work -> start of the next on its stream
  kStreamWait,  // the same across streams; always inferred
  kWork,        // start -> end of GPU work
  kHostWait,    // end of GPU work -> end of the call that waits for it
  kQueue,       // start of GPU work -> end of a launch call that had to wait for room in the queue
};

// A thread's own time follows the begin or end of an event of this kind. Recording an event costs a different time for each
// kind (recording_cost.h).
enum class Moment : std::uint8_t { kOperator, kCall, kPython, kOther };

inline constexpr std::uint32_t kNoIndex = ~std::uint32_t{0};

// An edge into one point: the point comes at least `weight_ns` after `from`.
struct Edge {
  std::uint32_t from = 0;
  EdgeKind kind = EdgeKind::kFixed;
  bool dropped = false;            // a change removed this dependency
  bool in_loader = false;          // kHost: inside the loader's range, which works in this process
  Moment after = Moment::kOther;   // kHost, kHandOver
  SliceId owner = kNone<SliceId>;  // of the time: the event it is spent in
  std::int64_t weight_ns = 0;
  std::int64_t unexplained_ns = 0;  // part of the weight: longer than is usual in this trace
};

// One kernel, copy or memset. Edges are kNoIndex where there is none.
struct GpuWork {
  SliceId slice = kNone<SliceId>, launch = kNone<SliceId>;
  analysis::WorkClass work = analysis::WorkClass::kCompute;
  bool on_main_device = false;
  bool before_recording = false;                       // as DeviceWork
  std::uint32_t start = 0, end = 0;                    // points
  std::uint32_t previous = kNoIndex, next = kNoIndex;  // GpuWork of the same stream
  std::uint32_t launch_edge = kNoIndex, stream_edge = kNoIndex, work_edge = kNoIndex;
  std::uint32_t spare_edge = kNoIndex;  // into the start of work after a copy: dropped until used
};

// A call that was still waiting when the GPU work ended.
struct HostWait {
  SliceId call = kNone<SliceId>;
  std::uint32_t work = kNoIndex;
  std::uint32_t wait_edge = 0, own_edge = 0;
  bool inferred = false;  // the trace does not say what the call waited for
};

// The call that launches a CUDA graph. Recording costs it time for each of the nodes.
struct GraphLaunch {
  SliceId call = kNone<SliceId>;
  std::vector<std::uint32_t> own_edges;  // a thread's own time in the call
  std::vector<std::uint32_t> nodes;      // GpuWork
};

// Where a step begins or ends: at a moment of the CPU, or when all work that was launched until then
// has ended, whichever is later. docs/definitions/steps.md.
struct Boundary {
  std::uint32_t cpu_point = kNoIndex;  // kNoIndex: only the GPU work decides
  std::int64_t after_ns = 0;           // from that point on
  std::uint32_t launched_count = 0;    // of StepGraph::by_launch
};
struct StepBoundaries {
  Boundary begin, end;
  bool steady = false;
};

// Where the innermost event of a CPU thread changes, in order of time.
struct ThreadMoments {
  TrackId track = kNone<TrackId>;
  std::vector<std::uint32_t> points;
};

// Borrows the trace. A point's edges come from points with lower numbers.
struct StepGraph {
  const Trace* trace = nullptr;
  const analysis::LaunchLinks* links = nullptr;
  std::vector<std::int64_t> time_ns;      // of each point, as recorded; point 0 is the origin
  std::vector<std::uint32_t> first_edge;  // points + 1 entries into `edges`
  std::vector<Edge> edges;
  std::vector<GpuWork> works;
  std::vector<std::uint32_t> by_launch;  // main device's works in order of launch
  std::vector<HostWait> waits;
  std::vector<GraphLaunch> graph_launches;
  std::vector<StepBoundaries> steps;
  std::vector<ThreadMoments> threads;
  TrackId main_thread = kNone<TrackId>;
  bool is_by_lanescope = false;  // who recorded it
  std::size_t work_without_launch_count = 0;

  std::uint32_t target_of(std::uint32_t edge) const;  // O(log n)
};

struct GraphInput {
  const Trace& trace;
  const analysis::LaunchLinks& links;
  const analysis::HostTimeline& host;
  const analysis::Steps& steps;
  std::span<const std::size_t> steady;
  std::span<const analysis::DeviceTimeline* const> devices;
  std::size_t main_device = 0;  // of `devices`
  TrackId main_thread = kNone<TrackId>;
};

// O(n log n). Borrows what the input names except the spans. Any thread.
StepGraph build_graph(const GraphInput& input);

}  // namespace lanescope::simulate
