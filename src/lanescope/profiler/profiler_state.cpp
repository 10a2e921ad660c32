#include "lanescope/profiler/profiler_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace lanescope {
namespace {

std::uint32_t record_option_bits(const ProfilerOptions& options) {
  std::uint32_t bits = 0;
  if (options.record_shapes || options.with_flops) bits |= LANESCOPE_RECORD_SHAPES;
  if (options.profile_memory) bits |= LANESCOPE_RECORD_MEMORY;
  if (options.with_stack) bits |= LANESCOPE_RECORD_STACK;
  if (options.with_flops) bits |= LANESCOPE_RECORD_FLOPS;
  if (options.with_modules) bits |= LANESCOPE_RECORD_MODULES;
  if (options.capture_overload_names) bits |= LANESCOPE_RECORD_OVERLOAD_NAMES;
  if (options.all_api) bits |= LANESCOPE_RECORD_ALL_API;
  if (options.detach.value_or(false)) bits |= LANESCOPE_RECORD_DETACH;
  if (!options.detach && options.last_ns == 0) bits |= LANESCOPE_RECORD_DETACH_WHERE_TESTED;
  return bits;
}

std::uint32_t activity_bits(const ProfilerOptions& options) {
  if (options.activities.empty()) return LANESCOPE_ACTIVITY_CPU | LANESCOPE_ACTIVITY_CUDA;
  std::uint32_t bits = 0;
  for (const ProfilerActivity activity : options.activities)
    bits |= static_cast<std::uint32_t>(activity);
  return bits;
}

bool is_recording(ProfilerAction action) {
  return action == ProfilerAction::kRecord || action == ProfilerAction::kRecordAndSave;
}

// Checks for the device files of NVIDIA's driver, on Linux and under WSL. A container with a
// GPU has them.
bool has_nvidia_gpu() {
  return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

constexpr std::uint64_t kMostOfOldCyclesBytes = 16 << 20;

}  // namespace

Result<void> Profiler::State::check_options() const {
  if (options.last_ns != 0 && options.schedule)
    return Error{Errc::kInvalidArgument,
                 "a schedule chooses its steps in advance, a ring keeps the last moments before "
                 "a problem; give one of the two"};
  if (options.slow_step == 0) return {};
  if (options.last_ns == 0)
    return Error{Errc::kInvalidArgument,
                 "a slow step is dumped from a ring: say how much it keeps (last_ns)"};
  if (!(options.slow_step > 1))
    return Error{
        Errc::kInvalidArgument,
        fmt::format("a slow step is more than 1 times the median; found {}", options.slow_step)};
  return {};
}

std::vector<std::string> Profiler::State::recorder_notes() const {
  std::vector<std::string> notes = recorder->notes();
  if (options.activities.empty() && !has_nvidia_gpu())
    std::erase_if(notes, [](const std::string& note) { return note.starts_with("cupti: "); });
  return notes;
}

Result<void> Profiler::State::open_recorder() {
  record::RecorderOptions wanted;
  wanted.spool_path = options.spool_path;
  wanted.free_name = options.free_name;
  wanted.directory = options.output_dir;
  wanted.temporary = is_temporary();
  wanted.max_bytes = options.max_spool_bytes;
  wanted.disk_reserve_bytes = options.disk_reserve_bytes;
  wanted.budget_ratio = options.budget_ratio;
  // With a schedule the user chose the steps, and wants the GPU in them.
  wanted.gpu_in_parts = !options.schedule && has_nvidia_gpu();
  wanted.options = record_option_bits(options);
  wanted.last_ns = options.last_ns;
  wanted.dump_signal = options.dump_signal;
  wanted.quiet_dumps = options.quiet_dumps;
  wanted.activities = activity_bits(options);
  LANESCOPE_TRY(recorder, record::Recorder::open(wanted));
  for (const auto& [key, json] : metadata)
    static_cast<void>(recorder->add_metadata_json(key, json));
  return {};
}

void Profiler::State::renew_recorder() {
  if (options.accumulate || !is_temporary() || recorder->is_open() ||
      recorder->window_count() == 0 || recorder->stats().file_bytes < kMostOfOldCyclesBytes)
    return;
  recorder->close();
  collect_notes();
  const std::uint32_t windows = recorder->window_count();
  const std::uint64_t dropped = recorder->stats().dropped_records;
  last_cycle = std::move(recorder);
  if (auto opened = open_recorder(); !opened) {
    warn(opened.error().message + "; nothing more is recorded");
    recorder = std::move(last_cycle);
    return;
  }
  windows_before += windows;
  // If another profiler of the process uses the file, its counters go on.
  if (recorder->spool_path() != last_cycle->spool_path()) dropped_before += dropped;
}

record::Recorder& Profiler::State::shown() const {
  return last_cycle && recorder->window_count() == 0 ? *last_cycle : *recorder;
}

void Profiler::State::warm_up() {
  renew_recorder();
  recorder->prepare();
}

void Profiler::State::open_window() {
  renew_recorder();  // nobody warmed up
  is_paused = false;
  const bool is_new = !recorder->is_open();
  const std::uint32_t before = recorder->window_count();
  if (auto started = recorder->start(); !started) return warn(started.error().message);
  last_cycle.reset();
  trace = nullptr;
  if (!is_new) return;
  cycle_first_window = before;
  ++cycles;
}

void Profiler::State::warn(std::string line) const {
  if (std::find(warnings.begin(), warnings.end(), line) == warnings.end())
    warnings.push_back(std::move(line));
}

ProfilerAction Profiler::State::action_at(std::int64_t number) const {
  if (!options.schedule) return ProfilerAction::kRecord;
  try {
    return options.schedule(number);
  } catch (...) {
    warn("the schedule threw; nothing is recorded during that step");
    return ProfilerAction::kNone;
  }
}

Result<Trace> Profiler::State::read_recording(const format::ReadSpoolOptions& read) const {
  const std::string& path = shown().spool_path();
  if (!recorder->is_live_ring()) return format::read_spool(path, read);
  const std::string copy = fmt::format("{}.read{}", path, getpid());
  LANESCOPE_TRY_VOID(recorder->dump(copy));
  auto read_back = format::read_spool(copy, read);
  unlink(copy.c_str());
  return read_back;
}

void Profiler::State::collect_notes() const {
  if (!recorder) return;
  for (std::string& line : recorder_notes()) warn(std::move(line));
  const record::RecorderStats stats = recorder->stats();
  if (stats.dropped_records != 0 && !running)
    warn(
        fmt::format("{} records were dropped: no room in time, the size limit of {} bytes, "
                    "or no room on the disk",
                    stats.dropped_records, options.max_spool_bytes));
}

void Profiler::State::run_tasks(std::span<const record::ProfilerTask> tasks, Profiler& profiler) {
  using enum record::ProfilerTask;
  for (const record::ProfilerTask task : tasks) switch (task) {
      case kPrepare:
        warm_up();
        break;
      case kStart:
        // A warm-up without an active step is no cycle, and the results stay as they are.
        if (is_recording(action)) open_window();
        break;
      case kStop:
        is_paused = false;
        recorder->stop();
        break;
      case kReady:
        if (!options.on_trace_ready) break;
        try {
          options.on_trace_ready(profiler);
        } catch (...) {
          warn("on_trace_ready threw; the recording continues");
        }
        break;
      case kWarnNoActive:
        warn("the schedule went from WARMUP to NONE: nothing was recorded in that cycle");
        break;
      case kWarnIncorrect:
        warn("the schedule ended a cycle without RECORD_AND_SAVE: on_trace_ready was not called");
        break;
    }
}

}  // namespace lanescope
