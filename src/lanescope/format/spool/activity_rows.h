// Device activities become the rows that torch.profiler would have written of them, and some more
// arguments. The table of rows and arguments: docs/formats/spool.md.
#pragma once
#include <span>

#include "lanescope/format/spool/activity_links.h"
#include "lanescope/model/gpu_device.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

struct ActivityRowsContext {
  TraceBuilder& builder;
  const SpoolIndex& index;
  std::span<const SpoolRange> ranges;
  std::span<const GpuDevice> devices;  // of the trace's deviceProperties
};

// Rows of API calls, device work, waits, events and overhead, arrows from calls to work,
// annotations on streams, names of devices and streams. Rows of one stream may overlap. Cost:
// linear in activities, and in the annotations around each launch (64 at most).
void add_activity_rows(const ActivityRowsContext& context, const SpoolActivities& activities,
                       const ActivityLinks& links);

}  // namespace lanescope::format
