// What a step would take after changes, from the replay of its dependency graph.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/simulate/changes.h"
#include "lanescope/simulate/replay.h"

namespace lanescope::simulate {

// One state of the program. Times are per step, over steady steps.
struct Outcome {
  std::int64_t step_ns = 0;  // median
  std::int64_t busy_ns = 0;  // of the main device, mean
  Limit limit = Limit::kCpu;
  CriticalPath path;  // of all steady steps
};

struct Prediction {
  Outcome before, after;
  std::vector<std::string> notes;
  std::int64_t gain_ns() const { return before.step_ns - after.step_ns; }
};

// How well the graph explains the recording itself.
struct Identity {
  std::int64_t recorded_ns = 0;  // median of steady steps, from the trace
  std::int64_t replayed_ns = 0;  // the same by replay
  std::int64_t recorded_busy_ns = 0, replayed_busy_ns = 0;
  // By replay without unexplained time: delays are as long as is usual in this trace.
  std::int64_t without_slack_ns = 0;
  double error_ratio() const;  // of `replayed_ns`
  double slack_ratio() const;  // of `without_slack_ns`, negative: shorter than recorded
};

struct Simulation {
  StepGraph graph;
  const analysis::SliceNesting* nesting = nullptr;  // borrowed
  Outcome recorded;
  Identity identity;
};

// `windows`: of each step, as compute_step_windows() gave them for the main device.
Simulation simulate(const GraphInput& input, const analysis::SliceNesting& nesting,
                    std::span<const analysis::Window> windows);

// Changes are applied in the order of ChangeKind, so the order in which they are given does not
// matter. Errors: apply_change().
Result<Prediction> predict(const Simulation& simulation, std::span<const Change> changes);

// Each change that fits this trace and gains at least 1 % alone, most gain first.
struct Candidate {
  Change change;
  Prediction prediction;
};
std::vector<Candidate> try_changes(const Simulation& simulation);

}  // namespace lanescope::simulate
