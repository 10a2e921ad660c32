// Records lanescope with lanescope: `lanescope --self-profile OUT table TRACE` shows where the
// command spends its time.
#pragma once
#include <functional>
#include <string>

#include "lanescope/cli/output.h"

namespace lanescope::cli {

// Runs `run` with the recorder on and writes the trace to `path`; stages are ranges ("read trace",
// "key averages", ...). Returns the code of `run`, or that of a failure to write the trace.
int run_self_profiled(const std::string& path, const std::string& command,
                      const std::function<int()>& run, Output& output);

}  // namespace lanescope::cli
