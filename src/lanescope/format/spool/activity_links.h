// Links device activities to windows, threads, ranges and each other, before they become rows
// of a trace.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lanescope/format/spool/launch_joins.h"
#include "lanescope/format/spool/spool_activities.h"
#include "lanescope/format/spool/spool_piece.h"
#include "lanescope/format/spool/spool_windows.h"

namespace lanescope::format {

// The earliest API call in a window that has a correlation id; 0: none.
struct FirstCall {
  std::int64_t start_ns = 0;
  std::uint32_t correlation = 0;
};

// The recording of the activities; everything is borrowed.
struct ActivityContext {
  SpoolPiece piece;                                      // to turn into rows
  const SpoolWindows& windows;                           // in the trace
  const SpoolWindows& all_windows;                       // of the whole recording
  std::span<const FirstCall> first_calls;                // by window; empty: from `activities`
  std::span<const SpoolRange> ranges;                    // around the calls of the piece
  std::span<const std::optional<std::int64_t>> step_of;  // by range: N of a ProfilerStep#N
  std::function<std::optional<std::int64_t>(std::uint64_t)> time_ns;  // of a tick
  std::function<TrackId(std::uint32_t)> thread_track;                 // of an OS thread id
};

struct LinkedCall {
  spool::ApiCallRecord record{};
  std::int64_t start_ns = 0, end_ns = 0;
  TrackId track = kNone<TrackId>;  // calls of the piece only
  bool in_window = false;          // a row of the trace
  bool in_piece = false;           // ... of this piece
  // A driver call that a runtime call with its correlation id made on the same thread: the same
  // call seen twice, so it is not drawn.
  bool is_inner = false;
  std::uint32_t open = kNoIndex;     // index into ActivityLinks::open
  std::optional<std::int64_t> step;  // number of the ProfilerStep range, on any thread, in
                                     // which it began
};

struct LinkedWork {
  std::uint32_t event = 0;  // index into SpoolActivities::work
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t call = kNoIndex;  // index into ActivityLinks::calls; in the trace or not
  bool launched_before_window = false;
};

struct LinkedOther {  // a wait, an event, an overhead
  std::uint32_t record = 0;
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t call = kNoIndex;
};

struct ActivityLinks {
  std::vector<LinkedCall> calls;  // in the file's order
  std::vector<OpenRanges> open;
  std::vector<std::uint32_t> annotations;  // `open` points into it
  std::vector<LinkedWork> work;            // what belongs to the piece, in the file's order
  std::vector<LinkedOther> syncs, events, overheads;
};

// The ranges open at a call of the piece, by its index; null: it has none, or there is no call.
inline const OpenRanges* open_at(const ActivityLinks& links, std::uint32_t call) {
  if (call == kNoIndex || links.calls[call].open == kNoIndex) return nullptr;
  return &links.open[links.calls[call].open];
}

// Work belongs to the trace if it, or the call that launched it, begins in one of its windows. Work
// was launched before the window in two cases: its call is outside of all windows; or no call has its
// correlation id, and the id is older than that of the window's first call (ids count upwards,
// modulo 2^32). Counts kOutOfWindow (outside all windows of the recording), kLaunchedBeforeWindow,
// kLaunchUnknown (no call has the id, and it is not older), kBadTime. Work, waits and events belong
// to the piece of their call; without a call, to the piece in which they begin. `activities` also
// has the calls of other pieces that launched work or waits of this one. Cost: O(n log n).
ActivityLinks link_activities(const ActivityContext& context, const SpoolActivities& activities,
                              ImportStats* stats);

// For a call inside a window: keeps the earliest one of its window. `first_calls`: one per window.
void note_first_call(const SpoolWindows& windows, const spool::ApiCallRecord& call,
                     std::int64_t start_ns, std::vector<FirstCall>* first_calls);

}  // namespace lanescope::format
