// The sessions of the recorder: how they begin, rest and end, and what they note.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "lanescope/record/active_recorder.h"
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

std::vector<std::string> ActiveRecorder::notes(std::uint32_t id) {
  const MutexLock lock(control_);
  const Session* session = find(id);
  return session ? session->notes : std::vector<std::string>();
}

std::string finish_all_sessions() { return ActiveRecorder::instance().close_all(); }

}  // namespace lanescope::record
