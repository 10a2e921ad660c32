// Allocations and frees of a spool as Kineto's instants.
#pragma once
#include <cstdint>
#include <span>

#include "lanescope/codec/spool_layout.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

struct MemoryEvent {
  std::int64_t time_ns, number;  // among the memory events of the recording
  TrackId track;
  spool::MemoryRecord memory;
};

// Their `Ev Idx` counts on from `first_number`.
void add_memory_rows(std::span<const MemoryEvent> events, std::int64_t first_number,
                     TraceBuilder& builder);

}  // namespace lanescope::format
