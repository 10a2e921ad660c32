// The steps of a trace from which numbers per step are made, and why each other step is left out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lanescope/analysis/device_work.h"
#include "lanescope/analysis/kernel_launches.h"
#include "lanescope/analysis/steps.h"
#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

struct StepOptions {
  // The number of the only step to measure; none: the steady ones.
  std::optional<std::int64_t> step = std::nullopt;
  // A step longer than all others together, or held up, counts like any other. For limits, which hold for every
  // step after the first, and for differences of means, which such a step may cause.
  bool count_long_step = false;
};

enum class LeftOutReason : std::uint8_t {
  kStartUp,    // the first of several: it also pays for start-up
  kCut,        // at the end, and the recording does not hold it as a whole
  kLong,       // took longer than all steady steps together
  kHeldUp,     // the calls and the GPU work of the others, which are alike, in much longer time
  kInTurn,     // steps come in turns, and the recording ends within one
  kNotChosen,  // StepOptions::step names another one
};

struct LeftOutStep {
  std::size_t step = 0;  // index in Steps::steps
  LeftOutReason reason{};
};

// docs/definitions/steps.md#step. Indices are those of Steps::steps. A value: it borrows nothing.
struct StepSelection {
  std::vector<std::size_t> steady;       // in order of time; of an unmarked trace the recording
  std::vector<LeftOutStep> left_out;     // all others, in order of time
  std::optional<std::size_t> long_step;  // the one of them with kLong or kHeldUp
  bool is_held_up = false;               // it is kHeldUp
  bool one_chosen = false;               // StepOptions::step
  // Steps are long and short in turns of so many, and `steady` holds whole turns; 0: they are not.
  std::size_t turn = 0;
  std::size_t turns_seen = 0;  // whole ones among the recorded steps that show it; 0: no turns
  // GPU work of the steady steps themselves is missing: what bounds a step is unknown.
  bool lacks_gpu_work = false;

  std::vector<std::size_t> left_out_for(LeftOutReason reason) const;  // in order of time
  std::vector<std::size_t> cut() const;                               // those with kCut
  std::vector<std::size_t> later() const;  // the steady ones and the long one, in order of time
  std::optional<LeftOutReason> reason(std::size_t step) const;  // none: it is steady. O(log n)
};

// What the selection depends on. Borrowed for the call.
struct StepEvidence {
  const Trace& trace;
  const Steps& steps;
  const KernelLaunches& launches;
  const DeviceTimeline* device = nullptr;  // null: no GPU work
  std::span<const Window> windows;         // of each step: on that device, without one on the CPU
};

// Leaves out cut steps at the end, as long as others remain. Then, where steps come in turns, what exceeds whole turns; else a
// long one or one that was held up. kInvalidArgument: no step has the number of `options`. O(n). Any thread.
Result<StepSelection> select_steps(const StepEvidence& evidence, const StepOptions& options = {});

}  // namespace lanescope::analysis
