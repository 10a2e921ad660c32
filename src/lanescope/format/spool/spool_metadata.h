// The top-level entries of a trace that is read from a spool.
#pragma once
#include <string_view>

#include "lanescope/format/spool/read_spool.h"
#include "lanescope/format/spool/spool_scan.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// The JSON of "deviceProperties". An entry of `options.metadata` overrides those of the recording. Of
// several entries in one of the two, the last one wins. "[]": there is none. The result is a view of
// `index` or `options`.
std::string_view spool_device_properties(const SpoolIndex& index, const ReadSpoolOptions& options);

// Adds what was recorded (shapes, stacks, ...), the host's name, the entries that sources and the program
// wrote, notes and clock anchors. An entry of `options.metadata` overrides the recording's entry with the
// same key. Of several such entries in the recording, the last one wins.
void add_spool_metadata(const SpoolScan& scan, const ReadSpoolOptions& options,
                        TraceBuilder& builder);

}  // namespace lanescope::format
