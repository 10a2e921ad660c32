// Reads Perfetto's protobuf: track events and GPU render stages, of any writer.
#pragma once
#include <string_view>

#include "lanescope/codec/unpack.h"
#include "lanescope/format/read_trace.h"

namespace lanescope::format {

bool is_pftrace(std::string_view head);

// How packets become rows: docs/formats/pftrace.md. Packets of other kinds (ftrace, statistics, ...) are
// counted and named in the metadata "unreadPackets". Errors: as read_trace(). Memory: the
// Trace and, while reading, 64 bytes per slice.
Result<Trace> read_pftrace(codec::UnpackedSource& source, const ReadOptions& options);

}  // namespace lanescope::format
