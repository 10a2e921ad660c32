// One spool during recording: the file, the prepared chunks, the background thread that prepares
// and closes them, and the records that do not come from recording threads: thread slots, window
// marks, clock anchors, metadata.
#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
  bool ring = false;  // reuses closed chunks that no window needs any more
  DumpSettings dumps = {};
  // The background thread calls it at each check while a window is open. True: call it again in a
  // millisecond. It must not wait for anything that itself waits for that thread.
  bool (*on_check)() noexcept = nullptr;
};

// Closed chunks that are still mapped. To unmap one costs as much as to unmap eight neighbours: each
// time, the mapping is split and all cores that run the program are interrupted. One thread.
class ClosedChunks {
 public:
  explicit ClosedChunks(SpoolFile* file) : file_(file) {}
  void add(spool::ChunkHeader* chunk) noexcept;
  void unmap() noexcept;  // all of them

 private:
  SpoolFile* file_;
  std::array<spool::ChunkHeader*, 16> chunks_{};  // 2 MiB
  std::size_t count_ = 0;
};

// Any thread, unless a comment says otherwise. Nothing throws; what finds no room is
// dropped and counted.
class Spool {
 public:
  static Result<std::unique_ptr<Spool>> create(const SpoolOptions& options, InternTable* texts);
  // Without finish(), the file looks as after a kill.
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // Fills the pool of prepared chunks; milliseconds.
  void prepare() noexcept LANESCOPE_EXCLUDES(mutex_);
  // While a window is open, the background thread checks the pool every millisecond, or every 8 while
  // threads write little; else it sleeps.
  void set_window_open(bool open) noexcept LANESCOPE_EXCLUDES(mutex_);

  // A chunk for a thread that has had `chunks` of them in this spool; null: none is
  // ready. The first ones are small and, if needed, made here under a lock. Later ones are prepared
  // ahead; when none is left, the thread makes one, within limits.
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
  // A top-level entry of a session's traces; session 0: of all sessions. It must fit.
  void write_metadata(std::uint32_t session, std::string_view key, std::string_view json) noexcept
      LANESCOPE_EXCLUDES(mutex_);
  static bool metadata_fits(std::string_view key, std::string_view json);
  // Writes records of an activity source; a record and its kContinued record stay in one chunk.
  // Returns how many were kept; the others are counted.
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
  // Call it when no thread writes any more and every thread has given back its chunk.
  // `leave_mapped`: a thread could not be reached, so its slot must stay mapped.
  void finish(bool leave_mapped) noexcept LANESCOPE_EXCLUDES(mutex_);

 private:
  Spool() = default;
  void run() noexcept;
  bool refill(std::uint32_t target) noexcept;  // false: there is no more room
  void return_unused() noexcept;
  void close_full_chunks() noexcept;
  void replace_control_chunk(spool::ChunkHeader* fresh) noexcept LANESCOPE_REQUIRES(mutex_);
  std::uint32_t make_chunks(std::span<spool::ChunkHeader*> chunks) noexcept;
  spool::ChunkHeader* make_chunk() noexcept;
  spool::ChunkHeader* take_or_make() noexcept;
  spool::ChunkHeader* take_small() noexcept;
  spool::ChunkHeader* make_own() noexcept;
  void close_recorded(spool::ChunkHeader* chunk) noexcept;
  void close_small(spool::ChunkHeader* chunk) noexcept;

  std::unique_ptr<SpoolFile> file_;
  std::uint64_t id_ = 0;
  InternTable* texts_ = nullptr;
  ChunkPool pool_;
  SmallChunks small_;
  // In ticks. Until then, threads do not ask again for room that was just refused, because dropping
  // a record must cost no more than writing it. Relaxed: a moment late does no harm.
  std::atomic<std::uint64_t> no_room_until_{0};
  // own_chunks_: how many chunks threads made since the background thread last checked.
  // no_own_until_: in ticks; until then they make none, as the last took long. Relaxed, as above.
  std::atomic<std::uint32_t> own_chunks_{0};
  std::atomic<std::uint64_t> no_own_until_{0};
  std::optional<ClosedChunks> closed_;  // of the background thread, and of finish() after its end
  std::optional<Ring> ring_;            // both exist from create() on
  std::optional<Dumper> dumper_;        // its thread ends before the rest is destroyed
  std::uint32_t first_target_ = 0, max_target_ = 0;
  bool (*on_check_)() noexcept = nullptr;
  std::thread thread_;

  mutable Mutex mutex_;
  std::condition_variable_any wake_;
  bool window_open_ LANESCOPE_GUARDED_BY(mutex_) = false;
  bool ending_ LANESCOPE_GUARDED_BY(mutex_) = false;
  spool::ChunkHeader* control_ LANESCOPE_GUARDED_BY(mutex_) = nullptr;
  Mutex activities_mutex_;  // a separate lock: the source writes much, the rest little
  spool::ChunkHeader* activities_ LANESCOPE_GUARDED_BY(activities_mutex_) = nullptr;
  std::uint32_t activity_chunks_ LANESCOPE_GUARDED_BY(activities_mutex_) = 0;
  std::vector<spool::ChunkHeader*> thread_chunks_ LANESCOPE_GUARDED_BY(mutex_);
  Mutex refill_mutex_;  // one filler at a time; never held while another lock is taken
};

}  // namespace lanescope::record
