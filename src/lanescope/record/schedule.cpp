#include "lanescope/record/schedule.h"

#include <fmt/format.h>

namespace lanescope::record {

const char* profiler_action_name(ProfilerAction action) {
  switch (action) {
    case ProfilerAction::kNone:
      return "NONE";
    case ProfilerAction::kWarmup:
      return "WARMUP";
    case ProfilerAction::kRecord:
      return "RECORD";
    case ProfilerAction::kRecordAndSave:
      return "RECORD_AND_SAVE";
  }
  return "?";
}

Result<ScheduleFunction> schedule(const ScheduleOptions& options) {
  const auto& o = options;
  if (o.wait < 0 || o.warmup < 0 || o.active < 1 || o.repeat < 0 || o.skip_first < 0 ||
      o.skip_first_wait < 0)
    return Error{
        Errc::kInvalidArgument,
        fmt::format("a schedule needs active >= 1 and no negative count; found wait={} "
                    "warmup={} active={} repeat={} skip_first={} skip_first_wait={}",
                    o.wait, o.warmup, o.active, o.repeat, o.skip_first, o.skip_first_wait)};
  return ScheduleFunction([o](std::int64_t step) {
    if (step < o.skip_first) return ProfilerAction::kNone;
    step -= o.skip_first;
    if (o.skip_first_wait != 0) step += o.wait;
    const std::int64_t cycle = o.wait + o.warmup + o.active;
    if (o.repeat > 0 && step / cycle >= o.repeat) return ProfilerAction::kNone;
    const std::int64_t place = step % cycle;
    if (place < o.wait) return ProfilerAction::kNone;
    if (place < o.wait + o.warmup) return ProfilerAction::kWarmup;
    return place < cycle - 1 ? ProfilerAction::kRecord : ProfilerAction::kRecordAndSave;
  });
}

std::span<const ProfilerTask> tasks_between(ProfilerAction previous, ProfilerAction current) {
  using enum ProfilerTask;
  static constexpr ProfilerTask kPrepareOnly[] = {kPrepare};
  static constexpr ProfilerTask kPrepareStart[] = {kPrepare, kStart};
  static constexpr ProfilerTask kStartOnly[] = {kStart};
  static constexpr ProfilerTask kNoActive[] = {kWarnNoActive, kStart, kStop};
  static constexpr ProfilerTask kIncorrect[] = {kWarnIncorrect, kStop};
  static constexpr ProfilerTask kSave[] = {kStop, kReady};
  static constexpr ProfilerTask kSavePrepare[] = {kStop, kReady, kPrepare};
  static constexpr ProfilerTask kSaveStart[] = {kStop, kReady, kPrepare, kStart};
  const bool records =
      current == ProfilerAction::kRecord || current == ProfilerAction::kRecordAndSave;
  const bool warms = current == ProfilerAction::kWarmup;
  switch (previous) {
    case ProfilerAction::kNone:
      if (records) return kPrepareStart;
      if (warms) return kPrepareOnly;
      return {};
    case ProfilerAction::kWarmup:
      if (records) return kStartOnly;
      if (warms) return {};
      return kNoActive;
    case ProfilerAction::kRecord:
      if (records) return {};
      return kIncorrect;
    case ProfilerAction::kRecordAndSave:
      if (records) return kSaveStart;
      if (warms) return kSavePrepare;
      return kSave;
  }
  return {};
}

std::span<const ProfilerTask> tasks_at_end(ProfilerAction last) {
  using enum ProfilerTask;
  static constexpr ProfilerTask kWarm[] = {kStart, kStop};
  static constexpr ProfilerTask kSave[] = {kStop, kReady};
  switch (last) {
    case ProfilerAction::kNone:
      return {};
    case ProfilerAction::kWarmup:
      return kWarm;
    default:
      return kSave;
  }
}

}  // namespace lanescope::record
