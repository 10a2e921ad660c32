// The first chunks of each thread: small ones, many of them in one shared chunk of the file.
//
// Problem: a program starts thousands of threads that record a few ranges each; a chunk of 128 KiB
// for each of them fills the disk and takes longer to prepare than the thread lives. Idea: a thread
// begins with small chunks, cut from a shared one under a short lock, and takes whole chunks once
// it has shown that it records more.
#pragma once
#include <cstdint>

#include "lanescope/codec/spool_layout.h"
#include "lanescope/record/mutex.h"

namespace lanescope::record {

// Any thread. A small chunk is written like a whole one; only its first owner uses it.
class SmallChunks {
 public:
  // The next small chunk, not claimed yet. `make_chunk()` gives a free chunk for more of them, or
  // null: then there is none.
  template <typename MakeChunk>
  spool::ChunkHeader* take(const MakeChunk& make_chunk) noexcept LANESCOPE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (!shared_ && !begin(make_chunk())) return nullptr;
    return cut();
  }
  // After a small chunk was closed. Returns the shared chunk when that was its last open one and no
  // place is left in it: nobody uses that any more. Else null.
  spool::ChunkHeader* release(spool::ChunkHeader* small) noexcept LANESCOPE_EXCLUDES(mutex_);
  // Nobody takes any more. Returns the shared chunk that still had places when all its small chunks
  // were released, else null.
  spool::ChunkHeader* finish() noexcept LANESCOPE_EXCLUDES(mutex_);

 private:
  bool begin(spool::ChunkHeader* fresh) noexcept LANESCOPE_REQUIRES(mutex_);
  spool::ChunkHeader* cut() noexcept LANESCOPE_REQUIRES(mutex_);

  Mutex mutex_;
  spool::ChunkHeader* shared_ LANESCOPE_GUARDED_BY(mutex_) = nullptr;  // has places left
};

}  // namespace lanescope::record
