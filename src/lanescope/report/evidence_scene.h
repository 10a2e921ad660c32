// What a small picture of one piece of evidence shows: a readable window of time, the lanes in it,
// and the way from launch to kernel. Chosen here, drawn by svg_evidence.h.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::report {

// One bar. Times are the slice's own and may lie outside the window; of folded ones the span of
// all.
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
  SliceId slice = kNone<SliceId>;  // of folded ones the longest
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t row = 0;
  std::uint32_t folded_count = 1;  // so many neighbours are too short to be drawn apart
  std::int64_t busy_ns = 0;        // of folded ones the sum of their durations
  Look look = Look::kOther;
  bool is_evidence = false;
};

struct SceneLane {
  enum class Kind : std::uint8_t { kOperators, kOwnTrack, kCalls, kStream } kind = Kind::kOperators;
  TrackId track = kNone<TrackId>;
  std::uint32_t row_count = 1;
  std::vector<SceneBar> bars;  // row by row, in order of time
};

// A stretch in which the device ran nothing, or several too short to be drawn apart.
struct SceneIdle {
  std::int64_t start_ns = 0, end_ns = 0;  // inside the window; of folded ones the first one's
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
  std::optional<std::int64_t> device;     // whose streams and idle times are shown
  std::vector<SceneIdle> idle;            // inside the window
  std::int64_t idle_ns = 0;               // inside the window, all of it
  std::uint32_t deeper_row_count = 0;     // rows of operators below those that are shown
  std::uint32_t hidden_stream_count = 0;  // streams with work in the window, left out
  std::uint32_t hidden_arrow_count = 0;
};

inline constexpr std::uint32_t kMostOperatorRows = 6, kMostStreams = 4, kMostArrows = 4,
                               kMostSubRows = 3;
// Bars narrower than two such parts of the window are folded with their neighbours into blocks of
// up to six, so that a row's size is bounded and its gaps stay visible: a block knows how busy it
// was.
inline constexpr std::int64_t kWindowParts = 720;

// `slice` is a row of the trace. O(slices inside the window + log n). Any thread.
Scene make_evidence_scene(const explain::Facts& facts, SliceId slice);

// The device whose timeline holds this piece of work; nullptr: none does. O(devices * log n).
const explain::DeviceFacts* device_of_work(const explain::Facts& facts, SliceId slice);

// The window alone: the evidence, the gap of the GPU beside it, its launch or what it launched as
// far as they are near, and a margin. Of an operator or annotation with more than 160 events inside
// only a part: around the longest stretch in it in which the GPU waited for the CPU (else was
// idle), unless that is a quarter of all; without any its beginning.
analysis::Window evidence_window(const explain::Facts& facts, SliceId slice);

}  // namespace lanescope::report
