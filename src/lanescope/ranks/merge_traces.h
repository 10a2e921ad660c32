// Merges a job's traces into one: clocks are aligned, processes are named by rank, and arrows lead
// from the last rank that arrives at a collective to the ranks that wait for it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"
#include "lanescope/ranks/job.h"

namespace lanescope::ranks {

struct MergedTrace {
  Trace trace;
  std::uint64_t arrows = 0;     // between ranks
  std::uint64_t unaligned = 0;  // ranks whose clock is unknown: they keep their own
};

// Reads each rank's file again, one at a time. Times count from the first rank's start. A process of the
// n-th rank gets the pid (n + 1) * 100,000 + its place in its file: pids of several machines collide, and
// viewers want numbers. Correlation ids stay; ids of arrows are new. Errors: `read_trace`, kLimit as
// TraceBuilder::finish(). Memory: the result and one trace.
Result<MergedTrace> merge_traces(
    const Job& job, const std::function<Result<Trace>(const std::string& path)>& read_trace);

}  // namespace lanescope::ranks
