// The top-level entries of a trace that is read from a spool.
#pragma once
#include <string_view>

#include "lanescope/format/spool/read_spool.h"
#include "lanescope/format/spool/spool_scan.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// The last one of the recording or of the options; "[]": there is none. A view of either.
std::string_view spool_device_properties(const SpoolIndex& index, const ReadSpoolOptions& options);

// Options, host, what sources and the program said, notes, clock anchors. Of equal keys the last wins.
void add_spool_metadata(const SpoolScan& scan, const ReadSpoolOptions& options,
                        TraceBuilder& builder);

}  // namespace lanescope::format
