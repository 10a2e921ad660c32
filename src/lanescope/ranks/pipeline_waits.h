// Whether the stages of a pipeline wait for each other, from sends and receives. Needs no clocks.
#pragma once
#include <optional>

#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {

// Nothing: fewer than two ranks receive in their steps. Any thread. O(ranks + groups).
std::optional<PipelineWaits> measure_pipeline(const Job& job);

// True: at least 10 % of the mean step, in 3 of 4 steps. docs/definitions/ranks.md#pipelines.
bool is_pipeline_bubble(const Job& job, const PipelineWaits& pipeline);

}  // namespace lanescope::ranks
