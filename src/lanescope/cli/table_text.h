// The table that `lanescope table TRACE` prints when no flag is given.
#pragma once
#include <string>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"

namespace lanescope::cli {

// In lanescope's style, by self device time, without a device by self CPU time; the first
// `row_limit` rows.
Result<std::string> usual_table_text(const Trace& trace, int row_limit);

// What that table is sorted by.
const char* usual_sort_key(bool has_device);

}  // namespace lanescope::cli
