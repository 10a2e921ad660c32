// Whether the columns of an index fit each other, as TraceBuilder leaves them. A Trace checks
// nothing when it is read, so whoever maps one from a file calls these first.
#pragma once
#include "lanescope/base/result.h"
#include "lanescope/model/trace_columns.h"

namespace lanescope::format {

// Texts: each is UTF-8 within the bytes, and is found by its hash. Call it before anything that
// asks for a text. Cost: two passes over all texts.
Result<void> check_index_texts(const StringColumns& strings);
// Values, tracks, processes, categories, steps and metadata: their ids, and that tracks share out
// the slices in order. Cost: their rows.
Result<void> check_index_tables(const TraceColumns& columns);
// Slices, instants, counters, flows, arguments and API calls: ids, order, times that fit 64 bits,
// numbers that are a bool. Needs the checks above. Cost: one pass over each column.
Result<void> check_index_rows(const TraceColumns& columns);

}  // namespace lanescope::format
