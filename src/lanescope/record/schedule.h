// When to record: torch.profiler's schedule, and what a profiler does when the action changes.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "lanescope/base/result.h"
#include "lanescope/record/record_abi.h"

namespace lanescope::record {

// torch.profiler's words and numbers.
enum class ProfilerAction : std::uint8_t {
  kNone = 0,
  kWarmup = 1,
  kRecord = 2,
  kRecordAndSave = 3
};
LANESCOPE_RECORD_EXPORT const char* profiler_action_name(
    ProfilerAction action);  // "NONE", "WARMUP", ...

// Maps a step number (from 0) to the action during it. Called on the thread that steps.
using ScheduleFunction = std::function<ProfilerAction(std::int64_t step)>;

// Counts of steps. One cycle is wait + warmup + active steps; repeat 0: cycles without end.
struct ScheduleOptions {
  std::int64_t wait = 0, warmup = 0, active = 1, repeat = 0;
  std::int64_t skip_first = 0;       // steps before the first cycle
  std::int64_t skip_first_wait = 0;  // not 0: the first cycle has no wait
};

// kInvalidArgument: a negative count, or active 0. The function is pure and may be called
// by any thread.
LANESCOPE_RECORD_EXPORT Result<ScheduleFunction> schedule(const ScheduleOptions& options);

// What a profiler does when one action follows another, in order.
enum class ProfilerTask : std::uint8_t {
  kPrepare,        // warm up: slow set-up, records nothing
  kStart,          // open a window
  kStop,           // close the window
  kReady,          // hand the result to on_trace_ready
  kWarnNoActive,   // a warm-up that no active step followed
  kWarnIncorrect,  // a window that ends without RECORD_AND_SAVE
};
LANESCOPE_RECORD_EXPORT std::span<const ProfilerTask> tasks_between(ProfilerAction previous,
                                                                    ProfilerAction current);
// The tasks at the end of profiling, after the action `last`.
LANESCOPE_RECORD_EXPORT std::span<const ProfilerTask> tasks_at_end(ProfilerAction last);

}  // namespace lanescope::record
