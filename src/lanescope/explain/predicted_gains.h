// What the fix of each finding would gain, by replay of the step without the profiler.
// docs/definitions/explain.md#predicted-gain, docs/decisions/predicted_gains.md.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/run_rules.h"
#include "lanescope/simulate/predict.h"

namespace lanescope::explain {

// Why the trace cannot be replayed, as "expected ..., found ..."; nothing: it can.
std::optional<std::string> why_not_replayed(const Facts& facts);
// Borrows `facts`. The trace must be one that can be replayed. O(n log n).
simulate::Simulation simulation_of(const Facts& facts,
                                   simulate::PathOwners owners = simulate::PathOwners::kNamed);

// A fix of what the CPU does, which leaves the GPU's work as it is.
bool is_of_cpu(const Finding& finding);

// Nanoseconds of a step: as recorded, and without what recording cost.
struct StepBase {
  std::int64_t recorded_ns = 0, step_ns = 0, error_ns = 0;
  std::int64_t cpu_error_ns = 0;  // without the GPU's part: the error of a gain of the CPU's time
};

// The GPU works for 95 % or more of the step without the profiler. With less, the estimate's error may hide waits of the
// program's own: at 91 % the GPU worked for 62 % of a step that was then timed.
bool is_nearly_all_gpu_work(std::int64_t busy_ns, const StepBase& base);

// Predicts gains of one or several findings. Borrows the facts that it was made from. Any thread.
class GainModel {
 public:
  // Null: the trace cannot be replayed, it explains its own step too poorly, or its steps take less than a microsecond.
  static std::shared_ptr<const GainModel> of(const Facts& facts);
  const StepBase& base() const { return base_; }
  // The mean, where base() has the median. So a step that is longer than the others counts.
  std::int64_t mean_step_ns() const { return std::max(replayed_mean_ns(), least_step_ns_); }
  std::int64_t busy_ns() const { return simulation_.unprofiled.outcome.busy_ns; }  // GPU, of base()
  // An upper bound for the gain of these fixes together. Fixes of the GPU's work gain at most that work; fixes of the CPU's
  // work gain at most the time by which the step is longer than the GPU's work.
  std::int64_t most_of(std::span<const Finding* const> findings) const;
  // The time at stake, limited to what the fix can gain of the step without the profiler:
  // - every fix: at most that step, or the share of it that the finding says (Finding::most_ratio);
  // - a fix of the CPU's work: at most the time by which the step is longer than the work that stays on the GPU (without
  //   Finding::gone_work_ns). Pauses between
  //   queued work stay, too, unless the fix replaces launches;
  // - calls that no longer run: at most their own GPU work and all of the GPU's waiting;
  // - steps that are longer than others: at most the time that they add to the mean;
  // - a fix of the GPU's work whose gain is not predicted: at most what its replays gained;
  // - waits whose gain is not predicted: the same, but not less than the time in which the GPU is idle or only copies while the
  //   operators run that wait (Finding::own_cost_ns).
  std::int64_t at_most_ns(const Finding& finding) const;
  // The predicted gain, or one with a known spread (Gain::spread_ns); else at_most_ns().
  std::int64_t shown_ns(const Finding& finding) const;
  // The gain of all these fixes together, per step: at most what is at stake. kNone: no replay can
  // tell it.
  Gain gain_of(std::span<const Finding* const> findings) const;
  // The gain of one fix. If it removes waits and is not predicted: with the limit of at_most_ns(); -1: no replay can tell it.
  Gain gain_of(const Finding& finding) const;

 private:
  StepBase base_;
  std::int64_t least_step_ns_ = 0;  // the GPU's work, and its waiting for long code
  simulate::Simulation simulation_;
  // Per step, as recorded.
  std::int64_t host_path_ns_ = 0, compute_ns_ = 0, communication_ns_ = 0, loader_ns_ = 0,
               between_queued_ns_ = 0;
  std::int64_t longest_stream_ns_ = 0;  // GPU work of one stream, without the cost of recording
  std::int64_t replayed_mean_ns() const {
    const simulate::CriticalPath& path = simulation_.unprofiled.outcome.path;
    return path.total_ns / static_cast<std::int64_t>(std::max<std::size_t>(path.steps, 1));
  }
  void keep_waiting(std::int64_t waiting_ns);  // per step
  // The time of a step that the fix cannot remove.
  std::int64_t rest_without(const Finding& finding) const;
  bool knows_pinned_rate_ = false;  // of each direction in which the trace has pageable copies

  simulate::Change removal_of_waits(const Finding& finding) const;
  // Nothing: there are no changes, or the trace has nothing that they change.
  std::optional<simulate::Prediction> predict(std::span<const simulate::Change> changes) const;
  Gain gain_from(const simulate::Prediction& prediction,
                 std::span<const Finding* const> findings) const;
  // Empty: no replay can follow its fix.
  std::vector<simulate::Change> changes_for(const Finding& finding) const;
  std::vector<std::string> change_texts(const Finding& finding) const;  // by Rule::fix
};

// The GPU works for 85 % or more of the mean step without the profiler, also if that step is longer by half of its error on the CPU.
bool is_gpu_bound_without_profiler(const GainModel& gains);

// Fills Explanation::gains, and Finding::gain of the costs that are at least kLeastGain of a step
// (at most eight). Says in the headline if only recording makes the step CPU-bound (is_gpu_bound()
// in step_path.h). Takes up to one second for a million slices and each such cost.
void predict_gains(const Facts& facts, Explanation& explanation);
// As run_rules() and then predict_gains(), but on several threads at once (RuleOptions::threads).
// The explanation borrows `facts`.
Result<Explanation> run_rules_and_gains(const Facts& facts, const RuleOptions& options = {});

}  // namespace lanescope::explain
