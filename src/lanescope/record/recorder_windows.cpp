// The windows of sessions: when one opens and closes, for the threads, the sources and the file.
#include <fmt/format.h>

#include "lanescope/record/active_recorder.h"
#include "lanescope/record/gpu_source.h"
#include "lanescope/record/tick_clock.h"

namespace lanescope::record {

void ActiveRecorder::prepare(std::uint32_t id) {
  const MutexLock lock(control_);
  if (Session* session = find(id)) prepare_session(*session);
}

void ActiveRecorder::prepare_session(Session& session) {
  if (session.prepared) return;
  session.prepared = true;
  spool_->prepare();
  if (session.activities & LANESCOPE_ACTIVITY_CUDA)
    if (const std::string problem = load_gpu_source(); !problem.empty())
      note(session, "cupti: " + problem);
  sources_.prepare(first_activities(session), session.options, note_for(session));
}

Result<void> ActiveRecorder::start(std::uint32_t id) {
  const MutexLock lock(control_);
  Session* session = find(id);
  if (!session)
    return Error{Errc::kUnavailable, "this recording is over; open a new one to record again"};
  if (session->open) return {};
  prepare_session(*session);
  session->open = true;
  session->resting = false;
  ++session->windows;
  sources_.start(first_activities(*session), session->options, note_for(*session));
  update_options();
  spool_->set_window_open(true);
  spool_->write_anchor();
  mark_window(spool::RecordKind::kWindowStart, *session);
  // Release: pairs with the acquire of RecordingScope, so threads see what changed in their writers
  // while nothing was recorded.
  if (open_windows_++ == 0 || windows_ended_)
    lanescope_recording.store(next_window_++, std::memory_order_release);
  windows_ended_ = false;
  // After the store: a fault before it would have switched recording off too early.
  if (spool_->file().is_cut()) lanescope_recording.store(0, std::memory_order_relaxed);
  follow_budget();
  if (budget_is_open_) judge_cost();
  return {};
}

void ActiveRecorder::stop(std::uint32_t id) {
  const MutexLock lock(control_);
  if (Session* session = find(id)) stop_session(*session);
}

void ActiveRecorder::stop_session(Session& session) {
  if (!session.open) return;
  session.open = false;
  const bool last = --open_windows_ == 0;
  if (last) windows_ended_ = false;
  if (last) {
    lanescope_recording.store(0, std::memory_order_seq_cst);
    writers_.wait_until_outside();
  }
  follow_budget();
  if (!session.ended) mark_window(spool::RecordKind::kWindowStop, session);
  session.ended = false;
  update_options();
  if (last) {
    sources_.stop();
    spool_->set_window_open(false);
  } else {
    sources_.flush();  // they go on for other sessions; what is finished belongs to this one, too
  }
  spool_->write_anchor();
  note_file_loss(session);
  writers_.name_threads();
  flush_drops();
}

void ActiveRecorder::update_options() {
  std::uint32_t options = 0;
  for (const auto& session : sessions_)
    if (session->open) options |= session->options;
  lanescope_record_options.store(thinned(options), std::memory_order_relaxed);
  lanescope_short_operator_ticks.store(short_operator_ticks(), std::memory_order_relaxed);
}

std::uint32_t ActiveRecorder::first_activities(const Session& session) const {
  return session.gpu_in_parts && budget_ && budget_->gpu().is_wanted()
             ? session.activities & ~std::uint32_t{LANESCOPE_ACTIVITY_CUDA}
             : session.activities;
}

void ActiveRecorder::mark_window(spool::RecordKind kind, const Session& session,
                                 std::uint32_t options) {
  spool::WindowRecord record{.begin_tsc = ticks(),
                             .kind = kind,
                             .cycle = session.windows - 1,
                             .session = session.id,
                             .options = session.options | options};
  if (kind == spool::RecordKind::kWindowStop) {
    spool_->ring().window_closed(session.id, record.begin_tsc);
  } else {
    record.last_ns = static_cast<std::uint64_t>(session.last_ns);
    const double rate = static_cast<double>(spool_->file().header().ticks_per_second) * 1e-9;
    const auto last_ticks = static_cast<std::uint64_t>(static_cast<double>(session.last_ns) * rate);
    spool_->ring().window_opened(
        {session.id, session.windows - 1, record.begin_tsc, 0, last_ticks});
  }
  spool_->write_control(record);
}

// Notes that another program cut or deleted the file.
void ActiveRecorder::note_file_loss(Session& session) {
  SpoolFile& file = spool_->file();
  file.check_for_cut();
  if (file.is_cut())
    note(session,
         fmt::format("{}: this file was cut while it was written, or another program wrote to "
                     "it, or its disk failed; the recording ended there. Leave the file alone "
                     "while the program records",
                     spool_->path()));
  else if (file.is_deleted())
    note(session, fmt::format("{}: this file was deleted while it was written; what was recorded "
                              "is lost. Leave the file alone while the program records",
                              spool_->path()));
}

}  // namespace lanescope::record
