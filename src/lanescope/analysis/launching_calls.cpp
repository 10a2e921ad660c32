#include "lanescope/analysis/launching_calls.h"

#include <algorithm>

namespace lanescope::analysis {

bool launches_work(const Trace& trace, const LaunchLinks& links, SliceId api_call) {
  const auto joined = links.launched_by(api_call);
  return std::any_of(joined.begin(), joined.end(),
                     [&](SliceId slice) { return is_device_work(trace.kind(slice)); });
}

}  // namespace lanescope::analysis
