// Which closed chunks of a recording that keeps its last seconds are still needed.
//
// Problem: recording goes on for ever in a file that must not grow. Idea: the times in each closed
// chunk are known; a chunk older than all that is still wanted is given back, and its place in the
// file is used again. A range that was open when its chunk closed may last until now. So when its
// chunk is given back, its record moves to a chunk of kind kKept. It leaves that chunk when the
// record of its end is given back, too. The background thread does all of this, so the hot path is
// not affected. Cost: two checks per chunk, 60 bytes of memory per chunk.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "lanescope/record/kept_ranges.h"
#include "lanescope/record/mutex.h"
#include "lanescope/record/spool_file.h"

namespace lanescope::record {

struct RingWindow {
  std::uint32_t session = 0, cycle = 0;
  std::uint64_t start = 0, stop = 0;  // ticks; stop 0: open
  std::uint64_t last = 0;             // wanted ticks before its end; 0: all of it, and never reused
};

// Any thread; nothing throws. Its lock is taken after all others of the recorder,
// except the file's.
class Ring {
 public:
  // `on`: gives chunks back. Else only tracks the windows.
  Ring(SpoolFile* file, bool on);
  bool is_on() const { return on_; }

  void window_opened(const RingWindow& window) noexcept LANESCOPE_EXCLUDES(mutex_);
  void window_closed(std::uint32_t session, std::uint64_t stop) noexcept LANESCOPE_EXCLUDES(mutex_);
  // Nobody will read that session's windows any more.
  void forget(std::uint32_t session) noexcept LANESCOPE_EXCLUDES(mutex_);
  std::vector<RingWindow> windows() const LANESCOPE_EXCLUDES(mutex_);
  // How many ticks before `now` the recording of the session is complete; nothing: there is no
  // ring.
  std::optional<std::uint64_t> covered(std::uint32_t session, std::uint64_t now) const noexcept
      LANESCOPE_EXCLUDES(mutex_);
  // Clock anchors before this tick are of no use.
  std::uint64_t oldest_wanted(std::uint64_t now) const noexcept LANESCOPE_EXCLUDES(mutex_);

  // Adds a chunk of records or activities, just before it is closed.
  void add(const spool::ChunkHeader* chunk, std::uint64_t now) noexcept LANESCOPE_EXCLUDES(mutex_);
  // Adds a small chunk when it is closed; add() follows for its shared chunk.
  void add_small(const spool::ChunkHeader* chunk) noexcept LANESCOPE_EXCLUDES(mutex_);
  // Gives back what is too old. Cheap when called too early.
  void give_back_old(std::uint64_t now) noexcept LANESCOPE_EXCLUDES(mutex_);
  // Without room: gives back the oldest chunk that no window without a ring needs. False: none.
  bool give_back_oldest(std::uint64_t now) noexcept LANESCOPE_EXCLUDES(mutex_);
  // How many long-open ranges found no room in the kKept chunks.
  std::uint64_t lost_open_ranges() const noexcept LANESCOPE_EXCLUDES(mutex_);
  // Closes the kKept chunks.
  void finish() noexcept LANESCOPE_EXCLUDES(mutex_);

  // While the file is copied, `copy` gets each chunk number below `count` once: from copy_chunk(),
  // or just before the chunk is given back; never two at a time. Leaves out chunks that nobody
  // wants any more.
  using Copy = std::function<void(std::uint32_t number)>;
  void start_copy(Copy copy, std::uint32_t count, std::uint64_t now) LANESCOPE_EXCLUDES(mutex_);
  void copy_chunk(std::uint32_t number) LANESCOPE_EXCLUDES(mutex_);
  void stop_copy() noexcept LANESCOPE_EXCLUDES(mutex_);

 private:
  struct Chunk {
    std::uint64_t newest = 0;
    std::uint32_t thread = 0, sequence = 0, number = 0;
    std::uint64_t oldest = 0;
    bool has_open_ranges = false;  // ranges without end, or ends of ranges elsewhere
    bool is_shared = false;
    bool operator<(const Chunk& other) const {
      return std::tie(newest, thread, sequence, number) <
             std::tie(other.newest, other.thread, other.sequence, other.number);
    }
  };
  std::uint64_t wanted_from(const RingWindow& window, std::uint64_t now) const
      LANESCOPE_REQUIRES(mutex_);
  bool is_wanted(const Chunk& chunk, std::uint64_t now, bool rings_too) const
      LANESCOPE_REQUIRES(mutex_);
  void give_back(const Chunk& chunk) LANESCOPE_REQUIRES(mutex_);
  void keep_open_ranges(const Chunk& chunk) LANESCOPE_REQUIRES(mutex_);
  bool end_in_small(std::uint32_t thread, const spool::RangeEndRecord& end)
      LANESCOPE_REQUIRES(mutex_);
  void drop_stale() LANESCOPE_REQUIRES(mutex_);

  SpoolFile* const file_;
  const bool on_;
  mutable Mutex mutex_;
  std::vector<RingWindow> windows_ LANESCOPE_GUARDED_BY(mutex_);
  std::set<Chunk> chunks_ LANESCOPE_GUARDED_BY(mutex_);
  KeptRanges kept_ LANESCOPE_GUARDED_BY(mutex_);
  // Closed small chunks that are still in the file: thread and sequence to number and place.
  // A shared chunk is as new as its newest record, so it may stay longer than later chunks
  // of its threads.
  std::unordered_map<std::uint64_t, std::uint64_t> small_ LANESCOPE_GUARDED_BY(mutex_);
  std::uint64_t next_check_ LANESCOPE_GUARDED_BY(mutex_) = 0;
  std::vector<std::byte> buffer_ LANESCOPE_GUARDED_BY(mutex_);
  Copy copy_ LANESCOPE_GUARDED_BY(mutex_);
  std::vector<bool> copied_ LANESCOPE_GUARDED_BY(mutex_);  // by number
};

}  // namespace lanescope::record
