// How long a step would take after changes, found by a replay of its dependency graph.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/simulate/changes.h"
#include "lanescope/simulate/replay.h"

namespace lanescope::simulate {

// The result of one replay: of the program as it is, or after changes. Times are per step, over steady steps.
struct Outcome {
  std::int64_t step_ns = 0;  // median
  std::int64_t busy_ns = 0;  // of the main device, mean
  Limit limit = Limit::kCpu;
  CriticalPath path;  // of all steady steps
};

// The length of all steady steps together without the cost of recording, by the same replay as Unprofiled::outcome. O(n).
std::int64_t steps_without_profiler_ns(const StepGraph& graph);

// Which program a prediction starts from.
enum class Base : std::uint8_t {
  kRecorded,    // as it was recorded
  kUnprofiled,  // without the cost of recording: what people run
};

struct Prediction {
  Outcome before, after;
  std::vector<std::string> notes;
  std::string assumed;  // as Applied::assumed, of all changes
  // The cost of recording is not known exactly, so the gain is a range: its ends in ns, and as shares of
  // the step.
  std::int64_t low_gain_ns = 0, high_gain_ns = 0;
  double low_ratio = 0, high_ratio = 0;
  std::int64_t gain_ns() const { return before.step_ns - after.step_ns; }
  // True: the gain depends so much on the cost of recording that the middle value means nothing.
  bool is_unsure() const;
};

// How much the CPU's and the GPU's time in a step changes from one minute to the next, because of clocks, caches and other programs.
// The cost of recording is not included. With both errors, the printed range held the measured time of four in five programs that
// were also timed without a profiler (docs/measurements/whatif.md).
inline constexpr double kCpuSpeedError = 0.2, kGpuSpeedError = 0.08;

// The events of many launches are of many kinds, and what is wrong with the costs of single kinds partly cancels out: from so many
// pieces of GPU work a step on, where the CPU has this part of the path or more, this part of the recording's error is left.
inline constexpr std::int64_t kManyLaunches = 1'000;
inline constexpr double kLeastOnCpu = 0.8, kErrorOfManyLaunches = 0.6;

// A step without the cost of recording.
struct Unprofiled {
  Outcome outcome;
  std::int64_t shortest_ns = 0, longest_ns = 0;
  std::int64_t launches = 0;  // pieces of GPU work of the main device in a steady step, mean
  // Half of longest_ns - shortest_ns; of many launches (above) less.
  std::int64_t recording_error_ns() const;
  // recording_error_ns() and kCpuSpeedError of the CPU's part of the path, combined as independent errors.
  std::int64_t cpu_error_ns() const;
  // cpu_error_ns() and kGpuSpeedError of the rest of the path, combined in the same way.
  std::int64_t error_ns() const;
};

// How well the graph explains the recording itself.
struct Identity {
  std::int64_t recorded_ns = 0;  // median of steady steps, from the trace
  std::int64_t replayed_ns = 0;  // the same by replay
  std::int64_t recorded_busy_ns = 0, replayed_busy_ns = 0;
  // By a replay without unexplained time: no delay is longer than is usual in this trace.
  std::int64_t without_slack_ns = 0;
  double error_ratio() const;  // of `replayed_ns`, against `recorded_ns`
  double slack_ratio() const;  // the same of `without_slack_ns`; negative: shorter than recorded
};

struct Simulation {
  std::shared_ptr<const StepGraph> graph;
  const analysis::SliceNesting* nesting = nullptr;  // borrowed
  PathOwners owners = PathOwners::kNamed;  // of the paths of these outcomes, and of predict()
  Outcome recorded;
  Unprofiled unprofiled;
  Identity identity;
  // False: the replay of the recorded step differs too much from the recording for a prediction.
  bool explains_step() const;
};

// `graph`: build_graph() of the same input. `windows`: one per step, from compute_step_windows() for
// the main device. `threads`: how many threads share the replays. Each needs the memory of one replay.
// The result is the same for any number of threads.
Simulation simulate(std::shared_ptr<const StepGraph> graph, const GraphInput& input,
                    const analysis::SliceNesting& nesting,
                    std::span<const analysis::Window> windows, unsigned threads = 1,
                    PathOwners owners = PathOwners::kNamed);

// Applies kNoProfiler first, then the other changes in the order of ChangeKind, then kCudaGraph. So the
// order in which they are given does not matter. Errors: those of apply_change().
Result<Prediction> predict(const Simulation& simulation, std::span<const Change> changes,
                           Base base = Base::kRecorded);

// The edges after the changes, as predict() replays them.
Result<std::vector<Edge>> changed_edges(const Simulation& simulation,
                                        std::span<const Change> changes,
                                        Base base = Base::kRecorded);

// Tries a fixed list of changes, each alone. Returns those that gain at least 1 % of the step without
// the profiler, largest gain first. Leaves out unsure gains.
struct Candidate {
  Change change;
  Prediction prediction;
};
std::vector<Candidate> try_changes(const Simulation& simulation);

}  // namespace lanescope::simulate
