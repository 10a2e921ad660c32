// Which API calls started work on a device.
#pragma once
#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// True: the call started a kernel, a copy or a memset. The record of a wait (category cuda_sync) is
// joined to its call, too, but is no such work. O(slices that the call is joined to).
bool launches_work(const Trace& trace, const LaunchLinks& links, SliceId api_call);

}  // namespace lanescope::analysis
