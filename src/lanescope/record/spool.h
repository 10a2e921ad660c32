// One spool while it is written: the file, the prepared chunks, the background thread that prepares
// and closes them, and what is not written by the recording threads themselves: thread slots,
// window marks, clock anchors, metadata.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/record/chunk_pool.h"
#include "lanescope/record/intern_table.h"
#include "lanescope/record/mutex.h"
#include "lanescope/record/ring.h"
#include "lanescope/record/small_chunks.h"
#include "lanescope/record/spool_dump.h"
#include "lanescope/record/spool_file.h"

namespace lanescope::record {

struct SpoolOptions {
  std::string path;
  std::uint64_t max_bytes = 0;
  std::uint32_t ready_chunks = 0;
  std::optional<std::uint64_t> disk_reserve_bytes = {};
  BusGuard* guard = nullptr;
  bool ring = false;  // closed chunks that no window wants any more are used again
  DumpSettings dumps = {};
  // Called ten times a second by the background thread while a window is open. It must not wait for
  // anybody who waits for that thread.
  void (*look)() noexcept = nullptr;
};

// Any thread, except where said. Nothing throws; what finds no room is dropped and counted.
class Spool {
 public:
  static Result<std::unique_ptr<Spool>> create(const SpoolOptions& options, InternTable* texts);
  // Without finish(): as if killed.
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // Fills the pool of prepared chunks; milliseconds.
  void prepare() noexcept LANESCOPE_EXCLUDES(mutex_);
  // While a window is open the background thread looks after the pool every millisecond, else it
  // sleeps.
  void set_window_open(bool open) noexcept LANESCOPE_EXCLUDES(mutex_);

  // A chunk for a thread that has had `chunks` of them in this spool; null: none is ready. The
  // first ones are small and made here if need be, under a lock; later ones only come prepared.
  spool::ChunkHeader* take_for_thread(std::uint32_t chunks) noexcept;
  ChunkPool& pool() { return pool_; }
  Ring& ring() { return *ring_; }
  Dumper& dumper() { return *dumper_; }
  SpoolFile& file() { return *file_; }
  InternTable& texts() { return *texts_; }
  std::uint64_t id() const { return id_; }
  const std::string& path() const { return file_->path(); }
  std::uint64_t bytes() const { return file_->bytes(); }
  std::string refusal() const { return file_->refusal(); }
  void count_drops_without_thread(std::uint64_t count) noexcept {
    file_->header().dropped_without_thread.fetch_add(count, std::memory_order_relaxed);
  }
  std::uint64_t drops_without_thread() const noexcept {
    return file_->header().dropped_without_thread.load(std::memory_order_relaxed);
  }

  // Valid until finish(). Null: no room.
  spool::ThreadSlot* new_thread(std::uint32_t* number) noexcept LANESCOPE_EXCLUDES(mutex_);
  // Sums over all threads so far.
  void thread_totals(std::uint64_t* dropped, std::uint64_t* depth_overflow,
                     std::uint32_t* threads) const noexcept LANESCOPE_EXCLUDES(mutex_);
  void write_control(const spool::Record& record) noexcept LANESCOPE_EXCLUDES(mutex_);
  // Records of an activity source; one with its kContinued record stays in one chunk. Returns how
  // many were kept; the others are counted.
  std::uint32_t write_activities(const spool::Record* records, std::uint32_t count) noexcept
      LANESCOPE_EXCLUDES(activities_mutex_);
  void count_activity_drops(std::uint64_t count) noexcept {
    file_->header().dropped_activities.fetch_add(count, std::memory_order_relaxed);
  }
  std::uint64_t activity_drops() const noexcept {
    return file_->header().dropped_activities.load(std::memory_order_relaxed);
  }
  // Returns when no control chunk is being replaced.
  void wait_for_control() noexcept LANESCOPE_EXCLUDES(mutex_) { const MutexLock lock(mutex_); }
  // Reads all clocks at one moment.
  void write_anchor() noexcept LANESCOPE_EXCLUDES(mutex_);
  // No thread may write any more, and every chunk that a thread held was handed in. `leave_mapped`:
  // a thread could not be reached, so its slot must stay where it is.
  void finish(bool leave_mapped) noexcept LANESCOPE_EXCLUDES(mutex_);

 private:
  Spool() = default;
  void run() noexcept;
  bool refill(std::uint32_t target) noexcept;  // false: there is no more room
  void return_unused() noexcept;
  void close_full_chunks() noexcept;
  void hand_over_control(spool::ChunkHeader* fresh) noexcept LANESCOPE_REQUIRES(mutex_);
  spool::ChunkHeader* make_chunk() noexcept;
  spool::ChunkHeader* take_or_make() noexcept;
  spool::ChunkHeader* take_small() noexcept;
  void close_recorded(spool::ChunkHeader* chunk) noexcept;
  void close_small(spool::ChunkHeader* chunk) noexcept;

  std::unique_ptr<SpoolFile> file_;
  std::uint64_t id_ = 0;
  InternTable* texts_ = nullptr;
  ChunkPool pool_;
  SmallChunks small_;
  // Ticks. Until then threads do not ask for room that was refused a moment ago: dropping a record
  // must cost no more than writing it. Relaxed: a moment late does no harm.
  std::atomic<std::uint64_t> no_room_until_{0};
  std::optional<Ring> ring_;      // both are there from create() on
  std::optional<Dumper> dumper_;  // its thread ends before the rest of this
  std::uint32_t first_target_ = 0, max_target_ = 0;
  void (*look_)() noexcept = nullptr;
  std::thread thread_;

  mutable Mutex mutex_;
  std::condition_variable_any wake_;
  bool window_open_ LANESCOPE_GUARDED_BY(mutex_) = false;
  bool ending_ LANESCOPE_GUARDED_BY(mutex_) = false;
  spool::ChunkHeader* control_ LANESCOPE_GUARDED_BY(mutex_) = nullptr;
  Mutex activities_mutex_;  // a lock of its own: the source writes much, the rest little
  spool::ChunkHeader* activities_ LANESCOPE_GUARDED_BY(activities_mutex_) = nullptr;
  std::uint32_t activity_chunks_ LANESCOPE_GUARDED_BY(activities_mutex_) = 0;
  std::vector<spool::ChunkHeader*> thread_chunks_ LANESCOPE_GUARDED_BY(mutex_);
  Mutex refill_mutex_;  // one filler at a time; taken before nothing else of ours
};

}  // namespace lanescope::record
