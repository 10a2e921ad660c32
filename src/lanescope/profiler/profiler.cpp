#include "lanescope/profiler/profiler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_text.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/profiler/slow_step_watch.h"
#include "lanescope/profiler/step_range.h"

namespace lanescope {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  codec::append_escaped_json(out, text);
  return out + '"';
}

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

struct Profiler::State {
  ProfilerOptions options;
  const pid_t pid = getpid();
  std::unique_ptr<record::Recorder> recorder;
  // Without accumulate: the finished recording of the last cycle, until the next window opens.
  std::unique_ptr<record::Recorder> last_cycle;
  std::uint32_t windows_before = 0;      // of recorders that are gone
  std::uint64_t dropped_before = 0;      // likewise, records
  std::uint32_t cycles = 0;              // cycles since start()
  std::uint32_t cycle_first_window = 0;  // the recorder's number; a pause splits a
                                         // cycle into windows
  bool is_paused = false;
  bool running = false;
  std::int64_t step = 0;
  ProfilerAction action = ProfilerAction::kNone;
  StepRange step_range;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::shared_ptr<const Trace> trace;
  std::uint32_t trace_windows = 0;  // windows that `trace` covers
  mutable std::vector<std::string> warnings;
  std::optional<SlowStepWatch> slow_steps;

  Result<void> check_options() const {
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

  bool is_copy() const { return getpid() != pid; }

  // The recorder's notes on the session, without "no GPU" if nobody asked for one.
  std::vector<std::string> recorder_notes() const {
    std::vector<std::string> notes = recorder->notes();
    if (options.activities.empty() && !has_nvidia_gpu())
      std::erase_if(notes, [](const std::string& note) { return note.starts_with("cupti: "); });
    return notes;
  }

  bool is_temporary() const { return options.spool_path.empty() && options.output_dir.empty(); }

  Result<void> open_recorder() {
    record::RecorderOptions wanted;
    wanted.spool_path = options.spool_path;
    wanted.free_name = options.free_name;
    wanted.directory = options.output_dir;
    wanted.temporary = is_temporary();
    wanted.max_bytes = options.max_spool_bytes;
    wanted.disk_reserve_bytes = options.disk_reserve_bytes;
    wanted.budget_ratio = options.budget_ratio;
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

  // Only the last cycle of a temporary file is needed, so a long run sometimes gets a new file. Not
  // for each cycle: a new file costs 15 ms, and reading finds the last cycle among many.
  void renew_recorder() {
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

  // The recorder with the cycle that the results show.
  record::Recorder& shown() const {
    return last_cycle && recorder->window_count() == 0 ? *last_cycle : *recorder;
  }

  void warm_up() {
    renew_recorder();
    recorder->prepare();
  }

  void open_window() {
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

  void warn(std::string line) const {
    if (std::find(warnings.begin(), warnings.end(), line) == warnings.end())
      warnings.push_back(std::move(line));
  }

  ProfilerAction action_at(std::int64_t number) const {
    if (!options.schedule) return ProfilerAction::kRecord;
    try {
      return options.schedule(number);
    } catch (...) {
      warn("the schedule threw; nothing is recorded during that step");
      return ProfilerAction::kNone;
    }
  }

  // A ring reuses its chunks while we read, so read a copy.
  Result<Trace> read_recording(const format::ReadSpoolOptions& read) const {
    const std::string& path = shown().spool_path();
    if (!recorder->is_live_ring()) return format::read_spool(path, read);
    const std::string copy = fmt::format("{}.read{}", path, getpid());
    LANESCOPE_TRY_VOID(recorder->dump(copy));
    auto read_back = format::read_spool(copy, read);
    unlink(copy.c_str());
    return read_back;
  }

  void collect_notes() const {
    if (!recorder) return;
    for (std::string& line : recorder_notes()) warn(std::move(line));
    const record::RecorderStats stats = recorder->stats();
    if (stats.dropped_records != 0 && !running)
      warn(
          fmt::format("{} records were dropped: no room in time, the size limit of {} bytes, "
                      "or no room on the disk",
                      stats.dropped_records, options.max_spool_bytes));
  }

  void run_tasks(std::span<const record::ProfilerTask> tasks, Profiler& profiler) {
    using enum record::ProfilerTask;
    for (const record::ProfilerTask task : tasks) switch (task) {
        case kPrepare:
          warm_up();
          break;
        case kStart:
          // After a warm-up without an active step, the last cycle stays the result.
          if (options.accumulate || is_recording(action)) open_window();
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
};

Profiler::Profiler(ProfilerOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
}

Profiler::~Profiler() { stop(); }

Result<void> Profiler::begin() {
  State& s = *state_;
  if (s.is_copy())
    return Error{Errc::kUnavailable,
                 "this profiler was made before fork(); make a new one in the child"};
  if (s.running) return Error{Errc::kUnavailable, "the profiler runs already"};
  LANESCOPE_TRY_VOID(s.check_options());
  s.trace = nullptr;
  s.trace_windows = s.windows_before = s.cycles = s.cycle_first_window = 0;
  s.is_paused = false;
  s.dropped_before = 0;
  s.last_cycle.reset();
  LANESCOPE_TRY_VOID(s.open_recorder());
  s.running = true;
  s.step = s.options.first_step;
  return {};
}

void Profiler::warm_up() {
  if (state_->running && !state_->is_copy()) state_->warm_up();
}

void Profiler::open_window() {
  State& s = *state_;
  if (!s.running || s.is_copy()) return;
  s.action = ProfilerAction::kRecordAndSave;
  s.open_window();
}

void Profiler::close_window() {
  State& s = *state_;
  if (!s.running || s.is_copy()) return;
  s.action = ProfilerAction::kNone;
  s.is_paused = false;
  s.recorder->stop();
}

void Profiler::pause() {
  State& s = *state_;
  if (!s.running || s.is_copy() || !s.recorder->is_open()) return;
  s.recorder->stop();
  s.is_paused = true;
}

void Profiler::resume() {
  State& s = *state_;
  if (!s.running || s.is_copy() || !s.is_paused) return;
  s.is_paused = false;
  if (auto started = s.recorder->start(); !started) s.warn(started.error().message);
}

Result<void> Profiler::start() {
  State& s = *state_;
  LANESCOPE_TRY_VOID(begin());
  go_on(s.step);
  s.slow_steps.reset();
  if (s.options.slow_step != 0)
    s.slow_steps.emplace(
        SlowStepWatch::Limits{s.options.slow_step, s.options.max_dumps, s.options.last_ns});
  return {};
}

void Profiler::go_on(std::int64_t step) {
  State& s = *state_;
  if (!can_go_on()) return;
  s.step = step;
  s.action = s.action_at(step);
  s.run_tasks(record::tasks_between(ProfilerAction::kNone, s.action), *this);
  if (s.options.schedule) s.step_range.open(step);
}

void Profiler::step(std::optional<std::int64_t> number) {
  State& s = *state_;
  if (!s.running || s.is_copy()) return;
  s.step_range.close();
  if (s.slow_steps) s.slow_steps->step_ended(s.step, *s.recorder);
  s.step = number.value_or(s.step + 1);
  const ProfilerAction previous = std::exchange(s.action, s.action_at(s.step));
  s.run_tasks(record::tasks_between(previous, s.action), *this);
  if (s.options.schedule) s.step_range.open(s.step);
}

void Profiler::rest() {
  State& s = *state_;
  if (!s.running || s.is_copy()) return;
  s.step_range.close();
  const bool cut_short = s.options.schedule && s.action == ProfilerAction::kRecord;
  s.run_tasks(record::tasks_at_end(std::exchange(s.action, ProfilerAction::kNone)), *this);
  if (cut_short)
    s.warn("profiling ended before the schedule's cycle did; what was recorded of it is kept");
  s.recorder->rest();
}

bool Profiler::can_go_on() const {
  return state_->running && !state_->is_copy() && !state_->recorder->is_over();
}

void Profiler::stop() {
  State& s = *state_;
  if (!s.running || s.is_copy()) return;
  rest();
  s.running = false;
  s.recorder->close();
  s.collect_notes();
}

std::int64_t Profiler::step_count() const { return state_->step; }
ProfilerAction Profiler::current_action() const { return state_->action; }

Result<std::shared_ptr<const Trace>> Profiler::trace() {
  State& s = *state_;
  if (window_count() == 0) return Error{Errc::kUnavailable, empty_reason()};
  const std::uint32_t windows = s.shown().window_count();
  const bool open = s.recorder->is_open();
  if (s.trace && s.trace_windows == windows && !open) return s.trace;
  format::ReadSpoolOptions options;
  options.session = s.shown().session();
  if (!s.options.accumulate) options.first_cycle = s.cycle_first_window;
  options.metadata = s.metadata;
  options.live = true;
  LANESCOPE_TRY(Trace trace, s.read_recording(options));
  s.trace = std::make_shared<const Trace>(std::move(trace));
  // An open window is not complete: read again next time.
  s.trace_windows = open ? 0 : windows;
  return s.trace;
}

Result<KeyAverages> Profiler::key_averages(const analysis::KeyAveragesOptions& options) {
  KeyAverages averages;
  auto recorded = trace();
  if (!recorded) {
    if (recorded.error().code != Errc::kUnavailable) return std::move(recorded).error();
    averages.empty_reason = recorded.error().message;
    return averages;
  }
  LANESCOPE_TRY(static_cast<analysis::KeyAverages&>(averages),
                analysis::compute_key_averages(**recorded, options));
  if (averages.rows.empty()) averages.empty_reason = empty_reason();
  return averages;
}

Result<std::string> KeyAverages::table(const report::TableOptions& options) const {
  if (rows.empty()) return empty_reason + "\n";
  return report::key_averages_text(*this, options);
}

Result<void> Profiler::export_chrome_trace(const std::string& path) {
  LANESCOPE_TRY(const auto recorded, trace());
  format::WriteOptions options;
  options.trace_name = path;
  LANESCOPE_TRY(const auto written, format::write_kineto_json(*recorded, path, options));
  static_cast<void>(written);
  return {};
}

Result<void> Profiler::dump(const std::string& path) {
  if (!state_->running || state_->is_copy())
    return Error{Errc::kUnavailable, "nothing runs that could be dumped"};
  return state_->recorder->dump(path);
}

std::vector<std::string> Profiler::dumps() const {
  return state_->recorder ? state_->recorder->dumps() : std::vector<std::string>();
}

Result<void> Profiler::add_metadata(std::string_view key, std::string_view text) {
  return add_metadata_json(key, quoted(text));
}

Result<void> Profiler::add_metadata_json(std::string_view key, std::string_view json) {
  State& s = *state_;
  if (!codec::is_strict_json(json))
    return Error{Errc::kInvalidArgument,
                 fmt::format("metadata \"{}\": expected one JSON value, found: {}", key,
                             json.substr(0, 60))};
  if (json.size() > record::Recorder::kMaxMetadataBytes)
    return Error{Errc::kLimit, fmt::format("metadata \"{}\": {} bytes; at most {} fit", key,
                                           json.size(), record::Recorder::kMaxMetadataBytes)};
  const auto known = std::find_if(s.metadata.begin(), s.metadata.end(),
                                  [&](const auto& entry) { return entry.first == key; });
  if (known == s.metadata.end())
    s.metadata.emplace_back(key, json);
  else
    known->second = json;  // like the trace id of each cycle: the last one counts
  s.trace = nullptr;
  // Also into the file at once, in case the process is killed.
  if (s.running) static_cast<void>(s.recorder->add_metadata_json(key, json));
  return {};
}

const std::string& Profiler::spool_path() const {
  static const std::string none;
  return state_->recorder ? state_->recorder->spool_path() : none;
}

std::uint32_t Profiler::window_count() const {
  return state_->recorder ? state_->windows_before + state_->recorder->window_count() : 0;
}

std::uint32_t Profiler::cycle_count() const { return state_->cycles; }
bool Profiler::is_window_open() const { return state_->recorder && state_->recorder->is_open(); }

record::RecorderStats Profiler::stats() const {
  if (!state_->recorder) return {};
  record::RecorderStats stats = state_->recorder->stats();
  stats.dropped_records += state_->dropped_before;
  return stats;
}

std::vector<std::string> Profiler::warnings() const {
  state_->collect_notes();
  return state_->warnings;
}

std::string Profiler::empty_reason() {
  State& s = *state_;
  if (!s.recorder) return "nothing was recorded: the profiler was not started";
  if (window_count() == 0) {
    std::string reason =
        fmt::format("nothing was recorded: the schedule had no active step among the {} that ran",
                    s.step - s.options.first_step + 1);
    // Find the step where it would have recorded: a few thousand steps ahead are enough for
    // any usual schedule.
    for (std::int64_t step = s.step + 1; step < s.step + 10'000 && !s.running; ++step) {
      const ProfilerAction action = s.action_at(step);
      if (action != ProfilerAction::kRecord && action != ProfilerAction::kRecordAndSave) continue;
      reason += fmt::format(
          "; step {} would have been the first (call step() after each, run at "
          "least {} steps)",
          step, step + 1);
      break;
    }
    return reason;
  }
  const auto recorded = trace();
  if (!recorded) return recorded.error().message;
  const Trace& found = **recorded;
  for (std::uint32_t i = 0; i < found.slices().size(); ++i)
    if (found.kind(SliceId{i}) != CategoryKind::kTrace) return "";
  std::string reason = fmt::format(
      "nothing was recorded in {} window(s) of {:.3f} ms: no RecordFunction range and no event of "
      "a source (torch operators need the torch observer) fell into them",
      window_count(), static_cast<double>(found.window_end_ns() - found.window_start_ns()) / 1e6);
  if (const auto lost = found.import_stats()[ImportIssue::kDroppedRecords].count; lost != 0)
    reason += fmt::format("; {} records were dropped", lost);
  for (const std::string& note : s.recorder_notes()) reason += "; " + note;
  return reason;
}

}  // namespace lanescope
