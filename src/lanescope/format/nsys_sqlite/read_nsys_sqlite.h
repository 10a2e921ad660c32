// Reads the SQLite export of Nsight Systems: nsys export --type sqlite report.nsys-rep.
// How tables and columns map to a Trace: docs/formats/nsys_sqlite.md.
#pragma once
#include <cstdint>

#include "lanescope/base/result.h"
#include "lanescope/format/nsys_sqlite/sqlite_file.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

// Whether the file has a table of CUDA work, calls or ranges.
bool is_nsys_export(const SqliteFile& file);

// kLimit: over 2^32 - 2 events. Damage is counted in Trace::import_stats(). Memory: the Trace, and
// the file's texts once more. Any thread.
Result<Trace> read_nsys_sqlite(SqliteFile& file, std::uint64_t file_bytes);

}  // namespace lanescope::format
