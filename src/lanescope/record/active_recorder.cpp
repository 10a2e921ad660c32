#include "lanescope/record/active_recorder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lanescope/record/leftovers.h"
#include "lanescope/record/new_spool.h"
#include "lanescope/record/process_state.h"
#include "lanescope/record/tick_clock.h"

namespace lanescope::record {
namespace {

constexpr std::size_t kMaxNotes = 64;

Result<void> check(const RecorderOptions& options) {
  if (options.max_bytes < (1u << 20))
    return Error{
        Errc::kInvalidArgument,
        fmt::format("a recording needs at least 1 MiB, max_bytes is {}", options.max_bytes)};
  if (options.last_ns < 0)
    return Error{Errc::kInvalidArgument,
                 fmt::format("a ring keeps a time of more than 0; last_ns is {}", options.last_ns)};
  if (options.budget_ratio != 0 && !(options.budget_ratio >= 0.001 && options.budget_ratio <= 0.5))
    return Error{Errc::kInvalidArgument,
                 fmt::format("a budget is 0.001 to 0.5 of the time; budget_ratio is {}",
                             options.budget_ratio)};
  return {};
}

}  // namespace

Result<std::uint32_t> ActiveRecorder::open_session(const RecorderOptions& options,
                                                   std::shared_ptr<SpoolName>* name) {
  LANESCOPE_TRY_VOID(check(options));
  const MutexLock lock(control_);
  end_resting_sessions();
  const bool joins_no_ring = spool_ && !spool_->ring().is_on() && options.last_ns != 0;
  const bool joins_elsewhere = spool_ && !options.temporary;
  if (!spool_) LANESCOPE_TRY_VOID(make_spool(options));
  auto session = std::make_unique<Session>();
  session->id = next_session_++;
  session->options = options.options;
  session->budget_ratio = options.budget_ratio;
  if (options.budget_ratio != 0) {
    session->options |= LANESCOPE_RECORD_MEASURE;
    // Budgets are one: what the first session asked for holds for the others.
    session->gpu_in_parts =
        budget_ ? budget_->gpu().is_wanted() : options.gpu_in_parts && options.last_ns == 0;
    if (!budget_) make_budget(options);
  }
  session->activities = options.activities;
  session->last_ns = options.last_ns;
  *name = name_;
  sessions_.push_back(std::move(session));
  if (joins_no_ring)
    note(*sessions_.back(),
         "shares the file of a recording that keeps everything: the file grows until both end");
  if (joins_elsewhere) {
    name_->temporary = false;
    note(*sessions_.back(),
         fmt::format("shares the file of a recording that runs already: it is {}", name_->path));
  }
  if (options.dump_signal != 0)
    if (std::string problem = take_dump_signal(options.dump_signal); !problem.empty())
      note(*sessions_.back(), std::move(problem));
  return sessions_.back()->id;
}

Result<void> ActiveRecorder::make_spool(const RecorderOptions& options) {
  SpoolOptions settings{.path = {},
                        .max_bytes = options.max_bytes,
                        .ready_chunks = options.ready_chunks,
                        .disk_reserve_bytes = options.disk_reserve_bytes,
                        .guard = &installed_bus_guard(),
                        .ring = options.last_ns != 0,
                        .on_check = []() noexcept { return instance().check_cost(); }};
  if (options.dump_signal != 0)
    settings.dumps = {dump_signals(), signal_name(options.dump_signal), options.quiet_dumps};
  settings.dumps.quiet = options.quiet_dumps;
  settings.dumps.flush_sources = [] { instance().sources().flush(); };
  LANESCOPE_TRY(spool_, create_new_spool(options, settings, &process_texts()));
  name_ = std::make_shared<SpoolName>(spool_->path(), options.temporary);
  if (options.temporary) {
    if (!std::exchange(looked_for_leftovers_, true))
      remove_old_temporary_spools(name_->path.substr(0, name_->path.rfind('/')));
    std::erase_if(temporary_names_, [](const auto& known) { return known.expired(); });
    temporary_names_.push_back(name_);
  }
  writers_.open(spool_.get());
  sources_.set_spool(spool_.get());
  return {};
}

std::vector<std::string> ActiveRecorder::close(std::uint32_t id) {
  const MutexLock lock(control_);
  Session* session = find(id);
  return session ? close_session(*session) : std::vector<std::string>();
}

std::vector<std::string> ActiveRecorder::rest(std::uint32_t id) {
  const MutexLock lock(control_);
  Session* session = find(id);
  if (!session) return {};
  stop_session(*session);
  note_losses(*session);
  session->resting = true;
  return session->notes;
}

// A file is shared by sessions that record, and closed when none of them does: the next session
// has its own place, size and form.
void ActiveRecorder::end_resting_sessions() {
  const bool all_rest = std::all_of(sessions_.begin(), sessions_.end(),
                                    [](const auto& session) { return session->resting; });
  while (all_rest && !sessions_.empty()) close_session(*sessions_.back());
}

void ActiveRecorder::note_losses(Session& session) {
  sources_.note_costs(note_for(session));
  note_file_loss(session);
  note_budget_exceeded(session);
  note_gpu_parts(session);
  // A ring always reaches its limit; what counts is the time that it holds.
  if (spool_->ring().is_on() && session.last_ns != 0) {
    note_ring_loss(session);
  } else if (const std::string refusal = spool_->refusal(); !refusal.empty()) {
    note(session, fmt::format("{}: could not grow: {}; records that came later were dropped",
                              spool_->path(), refusal));
  }
}

std::vector<std::string> ActiveRecorder::close_session(Session& session) {
  stop_session(session);
  note_losses(session);
  std::vector<std::string> notes = std::move(session.notes);
  std::erase_if(sessions_, [&](const auto& candidate) { return candidate.get() == &session; });
  if (sessions_.empty()) finish_spool();
  return notes;
}

std::string ActiveRecorder::close_all() {
  const MutexLock lock(control_);
  std::string path;
  if (spool_) {
    path = name_->path;
    name_->temporary = false;
  }
  while (!sessions_.empty()) close_session(*sessions_.back());
  // Temporary results that nobody can ask for any more.
  for (const auto& known : temporary_names_)
    if (const auto name = known.lock(); name && name->temporary) {
      name->temporary = false;
      remove_recording(name->path);
    }
  temporary_names_.clear();
  return path;
}

void ActiveRecorder::finish_spool() {
  sources_.set_spool(nullptr);
  const bool all_outside = writers_.close();
  flush_drops();
  budget_.reset();
  budget_version_ = 0;
  budget_written_ns_ = budget_began_ns_ = gpu_moves_ns_ = 0;
  last_stats_ = spool_stats();
  spool_->finish(!all_outside);
  last_stats_.file_bytes = spool_->bytes();
  last_stats_.lost_open_ranges = spool_->ring().lost_open_ranges();
  last_dumps_ = {spool_->path(), spool_->dumper().paths()};
  name_.reset();
  if (all_outside)
    spool_.reset();
  else
    static_cast<void>(spool_.release());  // a stopped thread may still write there
}

void ActiveRecorder::flush_drops() {
  if (const std::uint64_t drops = take_drops_without_writer())
    spool_->count_drops_without_thread(drops);
}

ActiveRecorder::Session* ActiveRecorder::find(std::uint32_t session) {
  for (const auto& candidate : sessions_)
    if (candidate->id == session) return candidate.get();
  return nullptr;
}

void ActiveRecorder::note(Session& session, std::string line) {
  if (session.notes.size() >= kMaxNotes ||
      std::find(session.notes.begin(), session.notes.end(), line) != session.notes.end())
    return;
  spool_->write_control(spool::NoteRecord{
      .begin_tsc = ticks(), .line = spool_->texts().intern_for_spool(line), .session = session.id});
  session.notes.push_back(std::move(line));
}

SourceList::Note ActiveRecorder::note_for(Session& session) {
  // Clang's check does not follow the lock into lambdas.
  return [this, &session](std::string line)
             LANESCOPE_NO_THREAD_SAFETY { note(session, std::move(line)); };
}

Result<void> ActiveRecorder::add_metadata(std::uint32_t id, std::string_view key,
                                          std::string_view json) {
  if (!Spool::metadata_fits(key, json))
    return Error{Errc::kLimit, fmt::format("metadata of {} bytes; at most {} fit", json.size(),
                                           Recorder::kMaxMetadataBytes)};
  const MutexLock lock(control_);
  if (!find(id)) return Error{Errc::kUnavailable, "this recording is over"};
  spool_->write_metadata(id, key, json);
  return {};
}

bool ActiveRecorder::is_over(std::uint32_t id) {
  const MutexLock lock(control_);
  return find(id) == nullptr;
}

bool ActiveRecorder::is_open(std::uint32_t id) {
  const MutexLock lock(control_);
  const Session* session = find(id);
  return session && session->open;
}

std::uint32_t ActiveRecorder::window_count(std::uint32_t id) {
  const MutexLock lock(control_);
  const Session* session = find(id);
  return session ? session->windows : 0;
}

RecorderStats ActiveRecorder::stats() {
  const MutexLock lock(control_);
  return spool_ ? spool_stats() : last_stats_;
}

RecorderStats ActiveRecorder::spool_stats() {
  RecorderStats stats;
  spool_->thread_totals(&stats.dropped_records, &stats.depth_overflow, &stats.threads);
  stats.dropped_records += spool_->drops_without_thread() + spool_->activity_drops();
  stats.file_bytes = spool_->bytes();
  stats.lost_open_ranges = spool_->ring().lost_open_ranges();
  return stats;
}

std::vector<std::string> ActiveRecorder::notes(std::uint32_t id) {
  const MutexLock lock(control_);
  const Session* session = find(id);
  return session ? session->notes : std::vector<std::string>();
}

void ActiveRecorder::remove_source(const LanescopeActivitySource* source) {
  const MutexLock lock(control_);
  sources_.remove(source);
}

void ActiveRecorder::lock_for_fork() {
  writers_.lock_for_fork();
  sources_.lock_for_fork();
}
void ActiveRecorder::unlock_in_parent() {
  sources_.unlock_in_parent();
  writers_.unlock_in_parent();
}
void ActiveRecorder::start_in_child(const ActiveRecorder& parent) {
  sources_.copy_in_child(parent.sources_);
  // the child's copies of Recorder objects find no session here
  next_session_ = parent.next_session_ + 1;
}

std::string finish_all_sessions() { return ActiveRecorder::instance().close_all(); }

}  // namespace lanescope::record
