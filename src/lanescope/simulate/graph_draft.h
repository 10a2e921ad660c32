// A dependency graph while it is built. Its points have draft ids until all are known and sorted by
// time; then edges are collected, and at the end they are sorted by the point that they lead into.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "lanescope/model/trace.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::simulate {

inline constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

struct HostPoint {
  std::int64_t time_ns = 0;
  SliceId slice = kNone<SliceId>;  // what the thread does from here on
};

struct DraftThread {
  TrackId track = kNone<TrackId>;
  std::uint32_t first = 0;  // draft id of its first point
  std::vector<HostPoint> points;
  std::uint32_t at(std::int64_t time_ns) const;  // its point at that time; kNoIndex: none
  // The last point at or before the time; kNoIndex: none.
  std::uint32_t last_at(std::int64_t time_ns) const;
};

struct GraphDraft {
  explicit GraphDraft(const GraphInput& input) : in(input), trace(input.trace) {}

  bool is_call(SliceId slice) const {
    return slice != kNone<SliceId> && is_api_call(trace.kind(slice));
  }
  std::int64_t start_ns(std::uint32_t work) const {
    return trace.start_ns(graph.works[work].slice);
  }
  std::int64_t end_ns(std::uint32_t work) const { return trace.end_ns(graph.works[work].slice); }
  std::uint32_t launch_name(const GpuWork& work) const;
  const DraftThread* main_thread() const;  // nullptr: none
  // The draft id of a thread's moment; kNoIndex: none.
  std::uint32_t host_point(SliceId slice, std::int64_t time_ns) const;
  std::int64_t time_of(std::uint32_t id) const { return graph.time_ns[position[id]]; }

  // Between draft ids. Returns the index among the pending edges; kNoIndex: `from` is not before
  // `to`, because clocks differ, so `to` cannot have waited for it.
  std::uint32_t add(std::uint32_t from, std::uint32_t to, const Edge& edge);
  // The point stays at the time of the recording.
  void fix(std::uint32_t id, SliceId owner);

  const GraphInput& in;
  const Trace& trace;
  StepGraph graph;
  std::vector<DraftThread> threads;
  std::vector<std::uint32_t> thread_of;  // by track
  std::vector<std::uint32_t> position;   // of a draft id in the order of points
  std::vector<Edge> pending;             // become graph.edges
  std::vector<std::uint32_t> targets;    // the point that each pending edge leads into
  std::vector<std::uint32_t> work_of;    // by slice
  std::vector<std::uint32_t> by_end;     // works
  // By draft id of the end of a call that waited: its own time, without the wait.
  std::unordered_map<std::uint32_t, std::int64_t> own_ns;
  std::unordered_map<std::uint32_t, std::uint32_t> own_edge;  // the same: the edge of that time
  std::uint32_t next_id = 0, host_end = 0;                    // host_end: of the threads' ids
};

std::int64_t median_or(std::vector<std::int64_t> values, std::int64_t otherwise);

// In this order:
void add_points(GraphDraft& draft);     // graph_points.cpp: threads, works, the order of all points
void connect_works(GraphDraft& draft);  // graph_works.cpp: into starts and ends of GPU work
void connect_calls(GraphDraft& draft);  // graph_calls.cpp: into ends of calls that waited
void connect_threads(GraphDraft& draft);  // graph_threads.cpp: own time and hand-overs

}  // namespace lanescope::simulate
