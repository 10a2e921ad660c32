// Chooses what the small picture of one piece of evidence shows: a readable window of time, the
// lanes in it, and the arrows from launches to kernels. svg_evidence.h draws it.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::view {

// One slice, or several neighbours folded into one bar because they are too short to be seen.
// Times may lie outside the window; for a folded bar, first start and last end.
struct SceneBar {
  enum class Look : std::uint8_t {
    kOperator,
    kAnnotation,
    kPython,
    kCall,
    kCompute,
    kCommunication,
    kCopy,
    kOther,
  };
  SliceId slice = kNone<SliceId>;  // folded: the longest
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t row = 0;
  std::uint32_t folded_count = 1;  // slices in this bar
  std::int64_t busy_ns = 0;        // folded: sum of the durations
  Look look = Look::kOther;
  bool is_evidence = false;
};

struct SceneLane {
  enum class Kind : std::uint8_t { kOperators, kOwnTrack, kCalls, kStream } kind = Kind::kOperators;
  TrackId track = kNone<TrackId>;
  std::uint32_t row_count = 1;
  std::vector<SceneBar> bars;  // row by row, in order of time
};

// A gap of the device, or several folded into one because they are too short to be seen.
struct SceneIdle {
  std::int64_t start_ns = 0, end_ns = 0;  // inside the window; folded: of the first
  analysis::IdleCause cause = analysis::IdleCause::kUnknown;
  std::uint32_t folded_count = 1;
  std::int64_t idle_ns = 0;  // sum
};

// From a launch call to what it started. One end may lie outside the window.
struct SceneArrow {
  std::int64_t launch_start_ns = 0, launch_end_ns = 0, work_start_ns = 0;
  std::uint32_t call_row = 0, work_row = 0;
  std::size_t call_lane = 0, work_lane = 0;  // indices into Scene::lanes
};

struct Scene {
  SliceId evidence = kNone<SliceId>;
  analysis::Window window;
  bool is_clip = false;          // the evidence itself is much longer than the window
  std::vector<SliceId> path;     // what encloses it (of GPU work: its launch), outermost first
  std::vector<SceneLane> lanes;  // operators, calls, streams
  std::vector<SceneArrow> arrows;
  std::optional<std::int64_t> device;     // the device of the streams and the idle times
  std::vector<SceneIdle> idle;            // inside the window
  std::int64_t idle_ns = 0;               // sum over the window, hidden ones included
  std::uint32_t deeper_row_count = 0;     // rows of operators below the last shown one
  std::uint32_t hidden_stream_count = 0;  // streams with work in the window, not shown
  std::uint32_t hidden_arrow_count = 0;
};

inline constexpr std::uint32_t kMostOperatorRows = 6, kMostStreams = 4, kMostArrows = 4,
                               kMostSubRows = 3;
// The window has so many parts. Bars narrower than two parts are folded with their neighbours into bars
// of up to six parts, so the size of a row is bounded. busy_ns shows how much of a folded bar is gaps.
inline constexpr std::int64_t kWindowParts = 720;

// `slice` is a row of the trace. O(slices inside the window + log n). Any thread.
Scene make_evidence_scene(const explain::Facts& facts, SliceId slice);

// The device whose timeline has this piece of work; nullptr: none. O(devices * log n).
const explain::DeviceFacts* device_of_work(const explain::Facts& facts, SliceId slice);

// Only the window: the evidence, the GPU's gap next to it, its launch or the work that it launched
// if that is near, and a margin. For an operator or annotation with more than 160 events inside,
// the window is a part of it: around its longest period in which the GPU waited for the CPU, else
// its longest idle period, else its beginning. If that period is a quarter of the evidence or more,
// the window is the whole evidence.
analysis::Window evidence_window(const explain::Facts& facts, SliceId slice);

}  // namespace lanescope::view
