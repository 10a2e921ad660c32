// Who started what, as far as a table needs it: quicker than compute_launch_links().
#pragma once
#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// launch_of and op_of of compute_launch_links(). Its other columns stay empty, and External ids are
// judged and counted only if device work needs them. The same for any number of threads
// (0: usual_threads()). Any thread.
LaunchLinks compute_launch_owners(const Trace& trace, unsigned threads);

}  // namespace lanescope::analysis
