// `lanescope info` as text for people and as JSON.
#pragma once
#include <string>

#include "lanescope/analysis/trace_info.h"

namespace lanescope::report {

// One line per fact; ends in a newline. Unknown facts are named as unknown. At most 20 threads and
// 20 streams are listed. Only the memory of the Trace depends on the machine that reads it.
std::string trace_info_text(const analysis::TraceInfo& info);

// docs/formats/json_output.md, command "info": all facts, threads and streams.
std::string trace_info_json(const analysis::TraceInfo& info);

}  // namespace lanescope::report
