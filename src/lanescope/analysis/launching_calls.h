// Which API calls started work on a device.
#pragma once
#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// Did the call start a kernel, a copy or a memset? The record of a wait (category cuda_sync) is
// also joined to its call, but starts nothing. O(slices that the call is joined to).
bool launches_work(const Trace& trace, const LaunchLinks& links, SliceId api_call);

}  // namespace lanescope::analysis
