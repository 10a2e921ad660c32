// Finds who started what, only from times and numbers: the ranges open at an API call, the API call
// that launched device work, the event of a wait.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lanescope/base/ids.h"

namespace lanescope::format {

inline constexpr std::uint32_t kNoIndex = ~std::uint32_t{0};

// A range of the CPU as the trace has it. Nanoseconds, half-open.
struct SpoolRange {
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t external_id = 0;
  std::int64_t sequence = -1;        // autograd's; -1: none
  std::uint64_t forward_thread = 0;  // torch's number of the thread that ran the forward op: for a
                                     // backward op its Fwd thread id, else this thread's number
  TrackId track = kNone<TrackId>;
  std::uint32_t text = 0;  // id of its name in the recording
  ArgsId args = kNone<ArgsId>;
  bool is_annotation = false;
  bool is_backward = false;
  bool is_collective = false;  // record_param_comms
  bool in_piece = true;        // began in the current piece, not before
};

// A moment on a thread, and the ranges that are open then, as indexes; kNoIndex: none. Each is the
// last to start of its kind: operators (if there is none, annotations; an annotation inside an
// operator launches nothing), collectives, backward ops.
struct OpenRanges {
  TrackId track = kNone<TrackId>;
  std::int64_t time_ns = 0;
  std::uint32_t innermost = kNoIndex, collective = kNoIndex, backward = kNoIndex;
  // A range of `annotations`, innermost first.
  std::uint32_t annotations_first = 0, annotations_count = 0;
};
// If more annotations are open at one moment, only the innermost ones count.
inline constexpr std::uint32_t kMaxOpenAnnotations = 64;

// Fills in all but track and time; appends to `annotations`. Ranges may overlap in any way. O(n log
// n), O(n) when both lists are sorted by track and time.
void find_open_ranges(std::span<const SpoolRange> ranges, std::span<OpenRanges> moments,
                      std::vector<std::uint32_t>* annotations);

// Finds the forward op that made the node of a backward op: among those with its sequence number on
// its forward thread, the last to start before it.
class ForwardOps {
 public:
  explicit ForwardOps(std::span<const SpoolRange> ranges);
  std::uint32_t find(std::uint32_t backward) const;  // index; kNoIndex

 private:
  std::span<const SpoolRange> ranges_;
  std::vector<std::uint32_t> forward_;  // by sequence, thread, start
};

// API calls by correlation id. Ids have 32 bits and wrap in long runs.
class CallsById {
 public:
  struct Call {
    std::uint32_t id;  // correlation id
    std::uint32_t index;
    std::int64_t start_ns;
    std::uint32_t tid;  // of its thread; calls that start together are ordered by it, as in
                        // the reader of JSON
  };
  // Clock errors can make work begin this much before its call; earlier work belongs
  // to another call.
  static constexpr std::int64_t kSkewNs = 1'000'000;

  explicit CallsById(std::vector<Call> calls);
  // Among the calls with that id, the last that started at or before the time, else the first one
  // if it is within kSkewNs. Ties: the highest tid is last. kNoIndex: none. Id 0 joins nothing.
  std::uint32_t find(std::uint32_t correlation, std::int64_t time_ns) const;

 private:
  std::vector<Call> calls_;
};

// The event records of a recording, for waits.
struct EventRecord {
  std::uint64_t sync_id = 0;
  std::uint32_t context = 0, event_id = 0;
  std::uint32_t correlation = 0, stream = 0;
};
class EventRecords {
 public:
  explicit EventRecords(std::vector<EventRecord> records);
  // By sync id if it is known, else by context and event: among several, the one whose correlation
  // id is the last before the wait's (ids may wrap). nullptr: none.
  const EventRecord* find(const EventRecord& wait) const;

 private:
  std::vector<EventRecord> by_sync_, by_event_;
};

}  // namespace lanescope::format
