// Turns device activities into the rows of torch.profiler, with some more arguments. The table of
// rows and arguments: docs/formats/spool.md.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "lanescope/format/spool/activity_carry.h"
#include "lanescope/format/spool/activity_links.h"
#include "lanescope/model/gpu_device.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

struct ActivityRowsContext {
  TraceBuilder& builder;
  const SpoolIndex& index;
  SpoolPiece piece;
  std::int64_t piece_end_ns;           // of its last tick; not looked at for the last piece
  std::span<const SpoolRange> ranges;  // those of earlier pieces first
  std::span<const GpuDevice> devices;  // of the trace's deviceProperties
  std::function<StringId(std::uint32_t)> name_of;  // of a text's id
  ActivityCarry& carry;
};

// Rows of API calls, device work, waits, events and overhead, arrows from calls to work,
// annotations on streams, names of devices and streams. Rows of one stream may overlap. The rows of
// an annotation are in the piece in which it ends; those of its backward work are in the last
// piece. Cost: linear in activities, and in the annotations around each launch (64 at most).
void add_activity_rows(const ActivityRowsContext& context, const SpoolActivities& activities,
                       const ActivityLinks& links);

}  // namespace lanescope::format
