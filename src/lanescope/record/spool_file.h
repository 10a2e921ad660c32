// The spool as a file that grows by chunks. It reserves space on the disk before it maps a chunk,
// so a full disk refuses a chunk and never raises a signal in the program. If somebody else cuts
// the file, nothing more is written, and what is mapped stays mapped.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/codec/spool_layout.h"
#include "lanescope/record/bus_guard.h"
#include "lanescope/record/mutex.h"

namespace lanescope::record {

// Any thread. Slow (system calls, page faults): never on the hot path.
class SpoolFile {
 public:
  // The file must not exist. kIo with the reason of the operating system. `guard` (may
  // be null) outlives the file. `disk_reserve`: bytes to leave free on the disk;
  // nothing: default_disk_reserve().
  static Result<std::unique_ptr<SpoolFile>> create(
      const std::string& path, std::uint64_t max_bytes, BusGuard* guard = nullptr,
      std::optional<std::uint64_t> disk_reserve = std::nullopt);
  // 5 % of the file system and at least 1 GB, but at most half of what is free now, so that
  // something can be recorded on a small or full disk.
  static std::uint64_t default_disk_reserve(std::uint64_t disk_bytes, std::uint64_t free_bytes);
  ~SpoolFile();  // the file stays as it is
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;

  // A zeroed, mapped and touched chunk of kind kFree, if possible at a place that was given back.
  // Null: the size limit, RLIMIT_FSIZE, the disk's reserve or its end is reached.
  spool::ChunkHeader* make_chunk() noexcept LANESCOPE_EXCLUDES(mutex_);
  // Fills `chunks` from the front and returns how many it made: several new ones cost little more than
  // one, and lie next to each other in memory.
  std::uint32_t make_chunks(std::span<spool::ChunkHeader*> chunks) noexcept
      LANESCOPE_EXCLUDES(mutex_);
  // Gives a free chunk its kind. `used` is 0.
  static void claim(spool::ChunkHeader* chunk, spool::ChunkKind kind,
                    std::uint32_t thread = spool::kNoThread, std::uint32_t sequence = 0) noexcept;
  // Writes the checksum and unmaps the chunk; nobody may write to it any more.
  void close_chunk(spool::ChunkHeader* chunk) noexcept LANESCOPE_EXCLUDES(mutex_);
  // The same in two steps, so that neighbours in memory are unmapped together: each time, all cores
  // that run the program are interrupted.
  void seal_chunk(spool::ChunkHeader* chunk) noexcept LANESCOPE_EXCLUDES(mutex_);
  void unmap_chunks(spool::ChunkHeader* first, std::uint32_t count) const noexcept;
  // Writes the checksum of a small chunk; its shared chunk stays mapped.
  static void close_small_chunk(spool::ChunkHeader* chunk) noexcept;
  // Removes a free chunk that nobody needs.
  void discard_chunk(spool::ChunkHeader* chunk) noexcept LANESCOPE_EXCLUDES(mutex_);
  // The same, and gives its space back to the disk if the file system can do that.
  void return_chunk(spool::ChunkHeader* chunk) noexcept LANESCOPE_EXCLUDES(mutex_);
  // Whether the disk has refused room since the last call.
  bool take_disk_full() noexcept {
    return disk_refused_.exchange(false, std::memory_order_relaxed);
  }
  // Frees the place of a closed chunk for reuse; readers now find it free.
  void give_back(std::uint32_t number) noexcept LANESCOPE_EXCLUDES(mutex_);
  // Writes the end of the range at that slot of a closed small chunk, unless it has one.
  void end_range(std::uint32_t number, std::uint32_t place, std::uint32_t slot,
                 std::uint64_t end_tsc) noexcept;
  // Reads one whole chunk from the file; `into` has kChunkBytes. False: it could not be read.
  bool read_chunk(std::uint32_t number, std::byte* into) const noexcept;
  // Copies a chunk while others write to it, in whole 8-byte words. All records below the copy's
  // `used` are complete.
  bool copy_live_chunk(std::uint32_t number, std::byte* into) const noexcept;
  std::uint32_t chunk_count() const noexcept LANESCOPE_EXCLUDES(mutex_);
  std::uint64_t max_bytes() const { return max_bytes_; }
  // True: somebody cut the file, or it cannot be written, so mapped memory may be zero. Ask after
  // reading, not before.
  bool is_cut() const noexcept {
    return cut_.load(std::memory_order_relaxed) || (guard_ && guard_->faults() != faults_before_);
  }
  // Checks whether the file still has its length; a cut ends the recording.
  void check_for_cut() noexcept LANESCOPE_EXCLUDES(mutex_);
  // True: the file has no name any more.
  bool is_deleted() const noexcept;
  // Call after every chunk was closed or discarded: removes unused space and marks the
  // file as finished.
  void finish() noexcept LANESCOPE_EXCLUDES(mutex_);

  spool::FileHeader& header() { return *header_; }
  const std::string& path() const { return path_; }
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  // Why make_chunk refused; empty when it never did.
  std::string refusal() const LANESCOPE_EXCLUDES(mutex_);

 private:
  SpoolFile() = default;
  static std::uint64_t place_of(std::uint32_t number);  // of a chunk, in bytes
  void refuse(std::string why) LANESCOPE_REQUIRES(mutex_);
  void refuse_for_room(std::string why) LANESCOPE_REQUIRES(mutex_);
  void end_recording() noexcept;  // somebody cut the file
  // Places next to each other.
  struct Places {
    std::uint32_t first = 0, count = 0;
    bool used_before = false;
  };
  Places take_places(std::uint32_t most) LANESCOPE_REQUIRES(mutex_);
  Places append_places(std::uint32_t most) LANESCOPE_REQUIRES(mutex_);
  std::byte* map_places(const Places& places) LANESCOPE_EXCLUDES(mutex_);
  void check_size() LANESCOPE_REQUIRES(mutex_);
  bool reserve_place(std::uint32_t number) LANESCOPE_REQUIRES(mutex_);
  bool reserve_places(std::uint32_t first, std::uint32_t count) LANESCOPE_REQUIRES(mutex_);
  bool leaves_reserve(std::uint64_t bytes) LANESCOPE_REQUIRES(mutex_);
  void* map(std::uint64_t offset, std::size_t bytes, int protection) const noexcept;
  void unmap(void* at, std::size_t bytes) const noexcept;
  // Each chunk has a place in the guard's table.
  bool guard(std::byte* at, std::size_t bytes) const noexcept;
  void forget_guarded(std::byte* at, std::size_t bytes) const noexcept;
  void add_place(std::uint32_t number) LANESCOPE_REQUIRES(mutex_);
  // Whether the newest chunk is what was written there, so the file was not cut and made longer.
  bool ends_as_written() const noexcept LANESCOPE_REQUIRES(mutex_);

  // The program may close any descriptor and open its own file with the same number. So before each
  // write we check that it is still ours, and open the file again if not. False: it is gone.
  bool keep_descriptor() noexcept LANESCOPE_REQUIRES(mutex_);
  bool is_ours(int fd) const noexcept;

  struct Inode {
    dev_t device = 0;
    ino_t number = 0;
    bool operator==(const Inode&) const = default;
  };
  std::string path_;
  std::atomic<int> fd_{-1};  // relaxed would do: map() checks what it got
  Inode inode_;
  std::uint64_t max_bytes_ = 0, id_ = 0;
  BusGuard* guard_ = nullptr;
  std::uint32_t faults_before_ = 0;
  std::atomic<bool> cut_{false};
  std::atomic<bool> disk_refused_{false};  // relaxed: a moment late does no harm
  spool::FileHeader* header_ = nullptr;
  std::atomic<std::uint64_t> bytes_{0};  // relaxed: a number for people
  mutable Mutex mutex_;
  std::uint32_t chunk_count_ LANESCOPE_GUARDED_BY(mutex_) = 0;
  std::uint32_t used_chunk_count_ LANESCOPE_GUARDED_BY(mutex_) = 0;
  std::vector<std::uint32_t> given_back_ LANESCOPE_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> returned_ LANESCOPE_GUARDED_BY(mutex_);  // have no space on the disk
  std::uint64_t reserve_ LANESCOPE_GUARDED_BY(mutex_) = 0;
  std::uint64_t room_ LANESCOPE_GUARDED_BY(mutex_) = 0;  // above the reserve, when last checked
  std::int64_t look_again_ns_ LANESCOPE_GUARDED_BY(mutex_) = 0;
  std::string refusal_ LANESCOPE_GUARDED_BY(mutex_);
};

}  // namespace lanescope::record
