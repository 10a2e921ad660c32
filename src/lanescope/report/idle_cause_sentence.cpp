#include "lanescope/report/idle_cause_sentence.h"

namespace lanescope::report {

using analysis::IdleCause;

const char* idle_cause_sentence(IdleCause cause) {
  switch (cause) {
    case IdleCause::kHostLate:
      return "The CPU had not yet launched what ran next.";
    case IdleCause::kAfterSync:
      return "The CPU waited for the GPU, so the queue ran empty.";
    case IdleCause::kLaunchLatency:
      return "The work was launched, and began a few microseconds later.";
    case IdleCause::kBetweenQueued:
      return "The next work was queued; this is the usual pause between two kernels.";
    case IdleCause::kWaiting:
      return "The next work was launched long before it began: it waited for other work, or for "
             "something that is not recorded.";
    case IdleCause::kProfiler:
      return "The profiler did its own work.";
    case IdleCause::kBeforeFirstWork:
      return "Nothing had been launched yet.";
    case IdleCause::kAfterLastWork:
      return "Nothing was launched any more.";
    case IdleCause::kUnknown:
      return "The launch of what ran next is not in the trace.";
  }
  return "";
}

}  // namespace lanescope::report
