// What the workers of a DataLoader did during some stretches of time, from samples of their stacks.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lanescope/analysis/steps.h"
#include "lanescope/explain/finding.h"
#include "lanescope/model/trace.h"

namespace lanescope::explain {

struct WorkerCode {
  std::int64_t samples = 0;  // of all workers' loops in the stretches
  std::int64_t busy = 0;     // of them: the worker made a batch
  // The deepest function that is on the stacks of at least half of the busy samples, their number,
  // and the line at which it was most often. Empty: fewer than kLeastSamples are busy.
  std::string function;
  std::int64_t in_function = 0;
  std::optional<std::int64_t> line;
};

// docs/definitions/python_samples.md#workers. Nothing: the trace has no samples of workers, or fewer
// than kLeastSamples in these stretches (disjoint, in order of time). O(slices log slices).
std::optional<WorkerCode> find_worker_code(const Trace& trace,
                                           std::span<const analysis::Window> stretches);

// "they made batches in 97 % (388 of 400 samples), about 82 % of that (318 samples) in
// dataset.py(10): __getitem__, mostly at line 14".
Sentence describe(const WorkerCode& code);

}  // namespace lanescope::explain
