// GPU render stages of a Perfetto trace: work of a GPU queue, graphics and compute.
#pragma once
#include <cstdint>
#include <string_view>

#include "lanescope/format/perfetto/event_log.h"
#include "lanescope/format/perfetto/sequence_state.h"
#include "lanescope/format/perfetto/track_slots.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// One GpuRenderStageEvent becomes a slice on a stream; the GPU and its queue are the stream.
// Compute work is a "kernel"; the other stages have the category "gpu_render_stage".
void add_render_stage(std::string_view message, std::int64_t ns, const SequenceState& state,
                      TraceBuilder& builder, TrackSlots& slots, EventLog& log);

}  // namespace lanescope::format
