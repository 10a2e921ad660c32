// Keeps each text of the process once and gives it an id for records; every spool gets a copy
// of each text.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "lanescope/base/string_pool.h"
#include "lanescope/record/chunk_pool.h"
#include "lanescope/record/mutex.h"
#include "lanescope/record/spool_file.h"

namespace lanescope::record {

// Any thread; nothing throws. Ids of intern() are never reused. Memory: at most kMaxBytes of texts
// and their tables.
class InternTable {
 public:
  static constexpr std::size_t kMaxBytes = 64u << 20;

  InternTable();
  // See lanescope_intern(). The text is in the attached spool before this returns, if
  // the disk allows.
  std::uint32_t intern(std::string_view text, const char** stored = nullptr,
                       std::size_t max_bytes = spool::kMaxTextBytes) noexcept
      LANESCOPE_EXCLUDES(mutex_);
  // A text for the attached spool only: metadata, notes. The next spool uses its id for another
  // text, so finished recordings leave nothing in this table. 0: no spool is attached, or no room.
  std::uint32_t intern_for_spool(std::string_view text,
                                 std::size_t max_bytes = spool::kMaxTextBytes) noexcept
      LANESCOPE_EXCLUDES(mutex_);
  // Writes all texts, also the known ones, to that spool; both must live until detach().
  void attach(SpoolFile* file, ChunkPool* pool) noexcept LANESCOPE_EXCLUDES(mutex_);
  // Tries once more to write the texts for which there was no room.
  void flush() noexcept LANESCOPE_EXCLUDES(mutex_);
  void detach() noexcept LANESCOPE_EXCLUDES(mutex_);

  // Around fork(), so that the child finds the table whole. The child's copy writes to no spool.
  void lock_for_fork() LANESCOPE_ACQUIRE(mutex_) { mutex_.lock(); }
  void unlock_in_parent() LANESCOPE_RELEASE(mutex_) { mutex_.unlock(); }
  void unlock_in_child() LANESCOPE_RELEASE(mutex_);

 private:
  void write_pending() LANESCOPE_REQUIRES(mutex_);
  bool write(std::uint32_t id, std::string_view text) LANESCOPE_REQUIRES(mutex_);

  Mutex mutex_;
  StringPool texts_ LANESCOPE_GUARDED_BY(mutex_);
  std::uint32_t overflow_id_ LANESCOPE_GUARDED_BY(mutex_) = 0;
  SpoolFile* file_ LANESCOPE_GUARDED_BY(mutex_) = nullptr;
  ChunkPool* pool_ LANESCOPE_GUARDED_BY(mutex_) = nullptr;
  spool::ChunkHeader* chunk_ LANESCOPE_GUARDED_BY(mutex_) = nullptr;
  // The process that has the chunk mapped. After a fork without handlers, our copy of the table
  // has no mapping.
  int pid_ LANESCOPE_GUARDED_BY(mutex_) = 0;
  std::uint32_t written_ LANESCOPE_GUARDED_BY(mutex_) = 0;  // ids below are in the spool
  // Ids of intern_for_spool(), ascending; texts_ has a placeholder for each, which no spool gets.
  std::vector<std::uint32_t> spool_ids_ LANESCOPE_GUARDED_BY(mutex_);
  std::size_t spool_ids_used_ LANESCOPE_GUARDED_BY(mutex_) = 0;
  std::uint32_t lost_spool_texts_ LANESCOPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace lanescope::record
