// The table that `lanescope table TRACE` prints without flags.
#pragma once
#include <string>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"

namespace lanescope::cli {

// In lanescope's style, by self device time, or by self CPU time without a device; the
// first `row_limit` rows.
Result<std::string> usual_table_text(const Trace& trace, int row_limit);

// The sort key of that table.
const char* usual_sort_key(bool has_device);

}  // namespace lanescope::cli
