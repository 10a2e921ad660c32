// The spool of the recorder, from its first session to its last one, and what fork() does to it.
#include "lanescope/record/active_recorder.h"

#include <memory>
#include <utility>

#include "lanescope/record/leftovers.h"
#include "lanescope/record/new_spool.h"
#include "lanescope/record/process_state.h"

namespace lanescope::record {

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

}  // namespace lanescope::record
