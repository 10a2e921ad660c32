#include "lanescope/profiler/profiler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_text.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/profiler/step_clock.h"

namespace lanescope {
namespace {

// ProfilerStep#N: ended by its thread through the token, by any other through the handle.
class StepRange {
 public:
  void open(std::int64_t number) noexcept {
    const std::string name = fmt::format("ProfilerStep#{}", number);
    record::RangeInfo info;
    info.name = record::intern_text(name.data(), name.size());
    // Above all addresses, so it meets no handle of the torch observer; told apart from another
    // profiler's by our own.
    info.handle = handle_ = (std::uint64_t{1} << 63) |
                            reinterpret_cast<std::uintptr_t>(this) << 16 |
                            (static_cast<std::uint64_t>(number) & 0xffff);
    token_ = record::begin_range(info);
    writer_ = lanescope_thread_writer;
  }
  void close() noexcept {
    if (token_.sequence == 0) return;
    if (lanescope_thread_writer == writer_)
      record::end_range(token_);
    else
      record::end_nested(handle_);
    token_ = {};
  }

 private:
  record::RangeToken token_;
  std::uint64_t handle_ = 0;
  const LanescopeWriter* writer_ = nullptr;
};

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

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

// The device files that NVIDIA's driver makes, on Linux and under WSL; a container has them when it
// was given a GPU.
bool has_nvidia_gpu() {
  return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

}  // namespace

struct Profiler::State {
  ProfilerOptions options;
  const pid_t pid = getpid();
  std::unique_ptr<record::Recorder> recorder;
  bool running = false;
  std::int64_t step = 0;
  ProfilerAction action = ProfilerAction::kNone;
  StepRange step_range;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::shared_ptr<const Trace> trace;
  std::uint32_t trace_windows = 0;  // windows that `trace` covers
  mutable std::vector<std::string> warnings;
  std::optional<StepClock> step_clock;
  std::int64_t step_began_ns = 0, last_dump_ns = 0;
  std::uint32_t slow_dumps = 0;

  Result<void> check_options() const {
    if (options.last_ns != 0 && options.schedule)
      return Error{Errc::kInvalidArgument,
                   "a schedule chooses its steps beforehand and a ring keeps what was just before "
                   "something odd; give one of the two"};
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

  // The step that ends now.
  void judge_step() {
    if (!step_clock) return;
    const std::int64_t now = steady_ns();
    const auto slow = step_clock->ended(now - std::exchange(step_began_ns, now));
    if (!slow || slow_dumps == options.max_dumps) return;
    if (slow_dumps != 0 && now - last_dump_ns < options.last_ns) return;
    ++slow_dumps;
    last_dump_ns = now;
    std::string why = fmt::format(
        "step {} took {:.3g} times the median of the {} steps before it ({:.3g} ms, median {:.3g} "
        "ms)",
        step, static_cast<double>(slow->duration_ns) / static_cast<double>(slow->median_ns),
        slow->steps, static_cast<double>(slow->duration_ns) * 1e-6,
        static_cast<double>(slow->median_ns) * 1e-6);
    if (slow->duration_ns > options.last_ns) why += ", which is longer than the ring";
    if (slow_dumps == options.max_dumps)
      why += fmt::format("; no more dumps of slow steps after these {}", slow_dumps);
    recorder->request_dump(std::move(why));
  }

  bool is_copy() const { return getpid() != pid; }

  // What the recorder says of the session. That there is no GPU is no news to whoever did not ask
  // for one.
  std::vector<std::string> recorder_notes() const {
    std::vector<std::string> notes = recorder->notes();
    if (options.activities.empty() && !has_nvidia_gpu())
      std::erase_if(notes, [](const std::string& note) { return note.starts_with("cupti: "); });
    return notes;
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

  // Places of a ring are used again while one reads, so a copy is read in its stead.
  Result<Trace> read_recording(const format::ReadSpoolOptions& read) const {
    const std::string& path = recorder->spool_path();
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

  void carry_out(std::span<const record::ProfilerDeed> deeds, Profiler& profiler) {
    using enum record::ProfilerDeed;
    for (const record::ProfilerDeed deed : deeds) switch (deed) {
        case kPrepare:
          recorder->prepare();
          break;
        case kStart:
          if (auto started = recorder->start(); !started) warn(started.error().message);
          break;
        case kStop:
          recorder->stop();
          break;
        case kReady:
          if (!options.on_trace_ready) break;
          try {
            options.on_trace_ready(profiler);
          } catch (...) {
            warn("on_trace_ready threw; the recording goes on");
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

Result<void> Profiler::start() {
  State& s = *state_;
  if (s.is_copy())
    return Error{Errc::kUnavailable,
                 "this profiler was made before fork(); a child needs one of its own"};
  if (s.running) return Error{Errc::kUnavailable, "the profiler runs already"};
  LANESCOPE_TRY_VOID(s.check_options());
  record::RecorderOptions options;
  options.spool_path = s.options.spool_path;
  options.free_name = s.options.free_name;
  options.directory = s.options.output_dir;
  options.temporary = s.options.spool_path.empty() && s.options.output_dir.empty();
  options.max_bytes = s.options.max_spool_bytes;
  options.disk_reserve_bytes = s.options.disk_reserve_bytes;
  options.budget_ratio = s.options.budget_ratio;
  options.options = record_option_bits(s.options);
  options.last_ns = s.options.last_ns;
  options.dump_signal = s.options.dump_signal;
  options.quiet_dumps = s.options.quiet_dumps;
  options.activities = activity_bits(s.options);
  s.trace = nullptr;
  s.trace_windows = 0;
  LANESCOPE_TRY(s.recorder, record::Recorder::open(options));
  for (const auto& [key, json] : s.metadata)
    static_cast<void>(s.recorder->add_metadata_json(key, json));
  s.running = true;
  s.step = 0;
  s.action = s.action_at(0);
  s.carry_out(record::deeds_between(ProfilerAction::kNone, s.action), *this);
  if (s.options.schedule) s.step_range.open(0);
  s.step_clock.reset();
  if (s.options.slow_step != 0) s.step_clock.emplace(s.options.slow_step);
  s.step_began_ns = steady_ns();
  s.slow_dumps = 0;
  return {};
}

void Profiler::step() {
  State& s = *state_;
  if (!s.running || s.is_copy()) return;
  s.step_range.close();
  s.judge_step();
  ++s.step;
  const ProfilerAction previous = std::exchange(s.action, s.action_at(s.step));
  s.carry_out(record::deeds_between(previous, s.action), *this);
  if (s.options.schedule) s.step_range.open(s.step);
}

void Profiler::stop() {
  State& s = *state_;
  if (!s.running || s.is_copy()) return;
  s.step_range.close();
  const bool cut_short = s.options.schedule && s.action == ProfilerAction::kRecord;
  s.carry_out(record::deeds_at_end(std::exchange(s.action, ProfilerAction::kNone)), *this);
  if (cut_short)
    s.warn("profiling ended before the schedule's cycle did; what was recorded of it is kept");
  s.running = false;
  s.recorder->close();
  s.collect_notes();
}

std::int64_t Profiler::step_count() const { return state_->step; }
ProfilerAction Profiler::current_action() const { return state_->action; }

Result<std::shared_ptr<const Trace>> Profiler::trace() {
  State& s = *state_;
  const std::uint32_t windows = s.recorder ? s.recorder->window_count() : 0;
  if (windows == 0) return Error{Errc::kUnavailable, empty_reason()};
  const bool open = s.recorder->is_open();
  if (s.trace && s.trace_windows == windows && !open) return s.trace;
  format::ReadSpoolOptions options;
  options.session = s.recorder->session();
  if (!s.options.accumulate) options.cycle = windows - 1;
  options.metadata = s.metadata;
  options.live = true;
  LANESCOPE_TRY(Trace trace, s.read_recording(options));
  s.trace = std::make_shared<const Trace>(std::move(trace));
  // What an open window holds is not all of it: read again next time.
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
    known->second = json;  // as the trace id of each cycle: the last one counts
  s.trace = nullptr;
  // Also into the file at once, for the case that the process is killed.
  if (s.running) static_cast<void>(s.recorder->add_metadata_json(key, json));
  return {};
}

const std::string& Profiler::spool_path() const {
  static const std::string none;
  return state_->recorder ? state_->recorder->spool_path() : none;
}

std::uint32_t Profiler::window_count() const {
  return state_->recorder ? state_->recorder->window_count() : 0;
}

record::RecorderStats Profiler::stats() const {
  return state_->recorder ? state_->recorder->stats() : record::RecorderStats();
}

std::vector<std::string> Profiler::warnings() const {
  state_->collect_notes();
  return state_->warnings;
}

std::string Profiler::empty_reason() {
  State& s = *state_;
  if (!s.recorder) return "nothing was recorded: the profiler was not started";
  if (s.recorder->window_count() == 0) {
    std::string reason = fmt::format(
        "nothing was recorded: the schedule had no active step among the {} that ran", s.step + 1);
    // Where would it have been? Looking a few thousand steps ahead finds it for any sane schedule.
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
      s.recorder->window_count(),
      static_cast<double>(found.window_end_ns() - found.window_start_ns()) / 1e6);
  if (const auto lost = found.import_stats()[ImportIssue::kDroppedRecords].count; lost != 0)
    reason += fmt::format("; {} records were dropped", lost);
  for (const std::string& note : s.recorder_notes()) reason += "; " + note;
  return reason;
}

}  // namespace lanescope
