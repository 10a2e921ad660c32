// The threads that record: their writers (record_abi.h), and the spool that gives them chunks.
#pragma once
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "lanescope/record/mutex.h"
#include "lanescope/record/record_abi.h"
#include "lanescope/record/spool.h"

namespace lanescope::record {

// Sums over LanescopeCost.
struct ThreadCosts {
  std::array<std::uint64_t, kLanescopeCostKinds> ticks{};
  std::uint64_t calls = 0, left_out = 0, left_out_ranges = 0;
  void add(const LanescopeCost& cost);
};

// Any thread. Its lock is short: a thread comes or goes.
class WriterList {
 public:
  // May throw std::bad_alloc.
  void add(LanescopeWriter* writer) LANESCOPE_EXCLUDES(mutex_);
  // The thread ends: takes its chunk.
  void remove(LanescopeWriter* writer) LANESCOPE_EXCLUDES(mutex_);
  // For the writer's own thread; see lanescope_next_chunk().
  bool next_chunk(LanescopeWriter* writer) noexcept;

  // From now on threads take their chunks from this spool.
  void open(Spool* spool) noexcept { spool_.store(spool, std::memory_order_release); }
  // Threads take no more chunks, and give back those that they have. False: a thread did not leave
  // the recorder. It may still write into its chunk, so the spool must stay.
  bool close() LANESCOPE_EXCLUDES(mutex_);
  // Call it when lanescope_recording is 0. Returns when no thread is between its check of that and
  // its last store. False: one is there for a second already, stopped by a debugger or a signal.
  bool wait_until_outside() LANESCOPE_EXCLUDES(mutex_);
  // Reads the threads' names into their slots. Threads get names after they start, so call it late.
  void name_threads() LANESCOPE_EXCLUDES(mutex_);
  // The cost of all threads, also of those that ended.
  ThreadCosts cost() LANESCOPE_EXCLUDES(mutex_);

  // Around fork(). The child has a list of its own.
  void lock_for_fork() LANESCOPE_ACQUIRE(mutex_) { mutex_.lock(); }
  void unlock_in_parent() LANESCOPE_RELEASE(mutex_) { mutex_.unlock(); }

 private:
  bool wait_for_writers() LANESCOPE_REQUIRES(mutex_);

  const int pid_ = getpid();
  Mutex mutex_;
  std::vector<LanescopeWriter*> writers_ LANESCOPE_GUARDED_BY(mutex_);
  ThreadCosts ended_cost_ LANESCOPE_GUARDED_BY(mutex_);  // of threads that ended
  // Release when a spool is ready, acquire in next_chunk(). Cleared only when no thread is inside
  // the recorder (LanescopeWriter::busy), so a pointer loaded there stays valid.
  std::atomic<Spool*> spool_{nullptr};
};

}  // namespace lanescope::record
