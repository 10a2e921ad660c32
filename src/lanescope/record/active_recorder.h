// The one recorder of this process: its sessions and the spool that they share. Every Recorder
// object uses it. Its functions are in active_recorder.cpp (the spool), recorder_sessions.cpp,
// recorder_windows.cpp, recorder_dumps.cpp and recorder_budget.cpp.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/record/cost_budget.h"
#include "lanescope/record/mutex.h"
#include "lanescope/record/recorder.h"
#include "lanescope/record/source_list.h"
#include "lanescope/record/spool.h"
#include "lanescope/record/spool_name.h"
#include "lanescope/record/writer_list.h"

namespace lanescope::record {

// Any thread. Lock order: control_ (slow: opens files, calls sources), then the locks of the lists,
// which are short. Recording threads never take control_.
class ActiveRecorder {
 public:
  // Made on first use, never destroyed; a forked child gets a new one.
  static ActiveRecorder& instance();

  Result<std::uint32_t> open_session(const RecorderOptions& options,
                                     std::shared_ptr<SpoolName>* name) LANESCOPE_EXCLUDES(control_);
  void prepare(std::uint32_t session) LANESCOPE_EXCLUDES(control_);
  Result<void> start(std::uint32_t session) LANESCOPE_EXCLUDES(control_);
  void stop(std::uint32_t session) LANESCOPE_EXCLUDES(control_);
  // See Recorder. Both return its notes.
  std::vector<std::string> rest(std::uint32_t session) LANESCOPE_EXCLUDES(control_);
  std::vector<std::string> close(std::uint32_t session) LANESCOPE_EXCLUDES(control_);
  // Returns the path of the file that was cut short; nothing when no session was open.
  std::string close_all() LANESCOPE_EXCLUDES(control_);
  Result<void> add_metadata(std::uint32_t session, std::string_view key, std::string_view json)
      LANESCOPE_EXCLUDES(control_);
  bool is_open(std::uint32_t session) LANESCOPE_EXCLUDES(control_);
  bool is_over(std::uint32_t session) LANESCOPE_EXCLUDES(control_);
  std::uint32_t window_count(std::uint32_t session) LANESCOPE_EXCLUDES(control_);
  RecorderStats stats() LANESCOPE_EXCLUDES(control_);
  // See Recorder. A recording is named by its spool's path.
  Result<void> dump(const std::string& of, const std::string& path) LANESCOPE_EXCLUDES(control_);
  std::uint64_t request_dump(std::uint32_t session, std::string why, std::uint64_t replaces)
      LANESCOPE_EXCLUDES(control_);
  std::vector<std::string> dumps(const std::string& of) LANESCOPE_EXCLUDES(control_);
  bool is_live_ring(const std::string& of) LANESCOPE_EXCLUDES(control_);
  // Frees what that session recorded: nobody will read it.
  void forget(std::uint32_t session) LANESCOPE_EXCLUDES(control_);
  std::vector<std::string> notes(std::uint32_t session) LANESCOPE_EXCLUDES(control_);

  // The threads, and the sources, of this process. remove_source() waits until no source is called.
  WriterList& writers() { return writers_; }
  SourceList& sources() { return sources_; }
  void remove_source(const LanescopeActivitySource* source) LANESCOPE_EXCLUDES(control_);

  // For the background thread: leaves out more or less, as the budget says. Does nothing while
  // somebody starts or stops a recording; the next call does it. False: there is no budget.
  bool check_cost() noexcept LANESCOPE_EXCLUDES(control_);

  // Around fork(). The child's recorder knows the same sources, none of them running.
  void lock_for_fork() LANESCOPE_NO_THREAD_SAFETY;
  void unlock_in_parent() LANESCOPE_NO_THREAD_SAFETY;
  void start_in_child(const ActiveRecorder& parent) LANESCOPE_NO_THREAD_SAFETY;

 private:
  struct Session {
    std::uint32_t id = 0;
    std::uint32_t options = 0, activities = 0;
    std::uint32_t windows = 0;
    std::int64_t last_ns = 0;  // 0: no ring
    double budget_ratio = 0;   // 0: none
    bool gpu_in_parts = false;
    bool open = false, prepared = false, resting = false;
    bool ended = false;  // its window, by the budget
    std::vector<std::string> notes;
  };

  Session* find(std::uint32_t session) LANESCOPE_REQUIRES(control_);
  // Makes the spool of the sessions that follow.
  Result<void> make_spool(const RecorderOptions& options) LANESCOPE_REQUIRES(control_);
  void prepare_session(Session& session) LANESCOPE_REQUIRES(control_);
  void note(Session& session, std::string line) LANESCOPE_REQUIRES(control_);
  // Notes what sources say while the lock is held.
  SourceList::Note note_for(Session& session) LANESCOPE_REQUIRES(control_);
  void note_ring_loss(Session& session) LANESCOPE_REQUIRES(control_);
  std::string short_ring_note(const Session& session) LANESCOPE_REQUIRES(control_);
  // `options`: more bits for the mark.
  void mark_window(spool::RecordKind kind, const Session& session, std::uint32_t options = 0)
      LANESCOPE_REQUIRES(control_);
  void note_file_loss(Session& session) LANESCOPE_REQUIRES(control_);
  void stop_session(Session& session) LANESCOPE_REQUIRES(control_);
  std::vector<std::string> close_session(Session& session) LANESCOPE_REQUIRES(control_);
  void end_resting_sessions() LANESCOPE_REQUIRES(control_);
  void note_losses(Session& session) LANESCOPE_REQUIRES(control_);
  void update_options() LANESCOPE_REQUIRES(control_);
  std::uint32_t thinned(std::uint32_t options) const LANESCOPE_REQUIRES(control_);
  std::uint64_t short_operator_ticks() const LANESCOPE_REQUIRES(control_);
  // After a session opens or closes.
  void follow_budget() LANESCOPE_REQUIRES(control_);
  void change_sources() LANESCOPE_REQUIRES(control_);
  void judge_cost() LANESCOPE_REQUIRES(control_);
  void end_windows() LANESCOPE_REQUIRES(control_);
  // What of a session's activities starts with its window: not the GPU that comes in parts.
  std::uint32_t first_activities(const Session& session) const LANESCOPE_REQUIRES(control_);
  void begin_gpu_part() LANESCOPE_REQUIRES(control_);
  void note_gpu_parts(Session& session) LANESCOPE_REQUIRES(control_);
  void note_thinning(const CostBudget::Change& change) LANESCOPE_REQUIRES(control_);
  void write_budget() LANESCOPE_REQUIRES(control_);
  void make_budget(const RecorderOptions& options) LANESCOPE_REQUIRES(control_);
  void note_budget_exceeded(Session& session) LANESCOPE_REQUIRES(control_);
  CostSum sum_cost() LANESCOPE_REQUIRES(control_);
  void finish_spool() LANESCOPE_REQUIRES(control_);
  void flush_drops() LANESCOPE_REQUIRES(control_);
  RecorderStats spool_stats() LANESCOPE_REQUIRES(control_);

  WriterList writers_;
  SourceList sources_;
  Mutex control_;
  std::vector<std::unique_ptr<Session>> sessions_ LANESCOPE_GUARDED_BY(control_);
  std::uint32_t next_session_ LANESCOPE_GUARDED_BY(control_) = 1;
  std::uint32_t next_window_ LANESCOPE_GUARDED_BY(control_) = 1;
  std::uint32_t open_windows_ LANESCOPE_GUARDED_BY(control_) = 0;
  std::unique_ptr<Spool> spool_ LANESCOPE_GUARDED_BY(control_);
  std::shared_ptr<SpoolName> name_ LANESCOPE_GUARDED_BY(control_);  // of spool_
  std::vector<std::weak_ptr<SpoolName>> temporary_names_ LANESCOPE_GUARDED_BY(control_);
  // Exists while windows are open and all their sessions have a budget. It goes on from one window
  // to the next.
  std::optional<CostBudget> budget_ LANESCOPE_GUARDED_BY(control_);
  bool budget_is_open_ LANESCOPE_GUARDED_BY(control_) = false;
  bool windows_ended_ LANESCOPE_GUARDED_BY(control_) = false;        // those that are open
  std::int64_t gpu_moves_ns_ LANESCOPE_GUARDED_BY(control_) = 0;     // of this budget_
  std::uint64_t budget_version_ LANESCOPE_GUARDED_BY(control_) = 0;  // the version in the spool
  std::int64_t budget_written_ns_ LANESCOPE_GUARDED_BY(control_) = 0,
                                  budget_began_ns_
                                  LANESCOPE_GUARDED_BY(control_) = 0;      // steady clock
  std::int64_t budget_wall_offset_ns_ LANESCOPE_GUARDED_BY(control_) = 0;  // as the trace counts
  std::atomic<bool> has_budget_{false};  // relaxed: a late check does no harm
  bool looked_for_leftovers_ LANESCOPE_GUARDED_BY(control_) = false;
  RecorderStats last_stats_ LANESCOPE_GUARDED_BY(control_);  // of the finished spool
  std::pair<std::string, std::vector<std::string>> last_dumps_
      LANESCOPE_GUARDED_BY(control_);  // its path, and its dumps
};

}  // namespace lanescope::record
