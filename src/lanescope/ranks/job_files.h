// Which ranks are in a job whose files several workers have read. Worker 0 decides; each worker
// keeps the calls of the ranks that it read.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/ranks/call_table.h"
#include "lanescope/ranks/clock_offsets.h"
#include "lanescope/ranks/communicator.h"
#include "lanescope/ranks/job.h"

namespace lanescope::ranks {

struct DividedJob {
  Job job;  // on worker 0: ranks without their calls, numbers, remarks; elsewhere empty
  std::vector<OwnRank> own;
  JobLayout layout;  // on every worker
};

// Every worker calls it, and gets the same error. kInvalidArgument: no file has a summary.
Result<DividedJob> divide_job(std::vector<PlacedFile> files, Communicator& workers);

}  // namespace lanescope::ranks
