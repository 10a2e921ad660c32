#include "lanescope/profiler/profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_text.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/profiler/profiler_state.h"

namespace lanescope {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  codec::append_escaped_json(out, text);
  return out + '"';
}

}  // namespace

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
