// Writes a Trace as Perfetto's protobuf: smaller than JSON, and ui.perfetto.dev opens it faster.
#pragma once
#include <filesystem>
#include <memory>

#include "lanescope/base/result.h"
#include "lanescope/codec/byte_sink.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

// Layout: docs/formats/pftrace.md. Reading it back gives the same Trace, except that events are
// numbered track by track. Slices that overlap without nesting are on tracks of their own, because
// a Perfetto track holds nested slices only. Errors: kIo (the old file is untouched). Memory: 16
// bytes an end of an arrow, 12 bytes a slice of the largest track, and 1 MB.
Result<WriteStats> write_pftrace(const Trace& trace, const std::filesystem::path& path,
                                 const WriteOptions& options = {});
// In memory.
std::string pftrace_bytes(const Trace& trace);

}  // namespace lanescope::format
