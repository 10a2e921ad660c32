// All events of a Trace in order of time, as a writer needs them, with the halves of arrows
// and async slices.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/model/trace.h"

namespace lanescope::format {

enum class EventKind : std::uint8_t {
  kAsyncEnd,  // before what begins at the same time
  kSlice,
  kAsyncBegin,
  kInstant,
  kCounter,
  kFlowStart,
  kFlowStep,
  kFlowEnd,  // after the slices that they bind to
};

struct EventRef {
  std::int64_t time_ns;
  std::uint32_t index;  // row of slices, instants, counters or flows
  EventKind kind;
};

// By time; equal times: ends of async slices, then slices (longer first), instants, counters,
// arrows. Among arrows with the same start, only the first has its kFlowStart. An end from which
// another arrow of the same id goes on is a kFlowStep. Async slices without length have only a
// kAsyncBegin. O(n log runs) time, 32 bytes an event while it runs.
std::vector<EventRef> order_events(const Trace& trace);

}  // namespace lanescope::format
