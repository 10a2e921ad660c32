// Each thread begins with small chunks. Many small chunks are in one shared chunk of the file.
//
// Problem: a program starts thousands of threads that record a few ranges each. A chunk of 128
// KiB for each fills the disk and takes longer to prepare than the thread lives. Idea: a thread
// first takes small chunks, cut from a shared chunk under a short lock. It takes whole chunks once it
// records more.
#pragma once
#include <cstdint>

#include "lanescope/codec/spool_layout.h"
#include "lanescope/record/mutex.h"

namespace lanescope::record {

// Any thread. A small chunk is written like a whole one; only its first owner uses it.
class SmallChunks {
 public:
  // The next small chunk, not claimed yet; null: there is none. `make_chunk()` returns a free chunk
  // to cut, or null.
  template <typename MakeChunk>
  spool::ChunkHeader* take(const MakeChunk& make_chunk) noexcept LANESCOPE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (!shared_ && !begin(make_chunk())) return nullptr;
    return cut();
  }
  // Call after a small chunk was closed. Returns the shared chunk if nobody uses it any more: this
  // was its last open small chunk and no place is left. Else null.
  spool::ChunkHeader* release(spool::ChunkHeader* small) noexcept LANESCOPE_EXCLUDES(mutex_);
  // Call when no thread takes small chunks any more. Returns the shared chunk that still has free places
  // if all its small chunks are released, else null.
  spool::ChunkHeader* finish() noexcept LANESCOPE_EXCLUDES(mutex_);

 private:
  bool begin(spool::ChunkHeader* fresh) noexcept LANESCOPE_REQUIRES(mutex_);
  spool::ChunkHeader* cut() noexcept LANESCOPE_REQUIRES(mutex_);

  Mutex mutex_;
  spool::ChunkHeader* shared_ LANESCOPE_GUARDED_BY(mutex_) = nullptr;  // has places left
};

}  // namespace lanescope::record
