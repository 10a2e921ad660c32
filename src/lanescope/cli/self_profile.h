// lanescope recorded by lanescope: `lanescope --self-profile OUT table TRACE` shows where the
// command's own time goes.
#pragma once
#include <functional>
#include <string>

#include "lanescope/cli/output.h"

namespace lanescope::cli {

// Runs it with the recorder on and writes the trace to `path`; stages are ranges ("read trace",
// "key averages", ...). Returns the code of `run`, or the one that says why there is no trace.
int run_self_profiled(const std::string& path, const std::string& command,
                      const std::function<int()>& run, Output& output);

}  // namespace lanescope::cli
