// `lanescope info` as text for people and as JSON.
#pragma once
#include <string>

#include "lanescope/analysis/trace_info.h"

namespace lanescope::report {

// A line a fact, unknown facts named as unknown; ends in a newline. At most 20 threads and 20
// streams are listed. No number in it depends on the machine that reads, but for the memory of the
// Trace.
std::string trace_info_text(const analysis::TraceInfo& info);

// docs/formats/json_output.md, command "info": everything, all threads and streams.
std::string trace_info_json(const analysis::TraceInfo& info);

}  // namespace lanescope::report
