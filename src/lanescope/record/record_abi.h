// The plain-C interface of liblanescope_record.so. Code built on another machine or with another
// std::string (the torch observer, with _GLIBCXX_USE_CXX11_ABI=0) uses only this file,
// thread_writer.h and activity_source.h.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lanescope/codec/record_options.h"

#define LANESCOPE_RECORD_EXPORT __attribute__((visibility("default")))
// Changes whenever LanescopeWriter, Record or the functions below change. Compare with
// lanescope_record_abi() first: LANESCOPE_RECORD_ABI is the version of the header, the function
// returns that of the loaded library.
#define LANESCOPE_RECORD_ABI 9u

#define LANESCOPE_ACTIVITY_CPU 1u
#define LANESCOPE_ACTIVITY_CUDA 2u

namespace lanescope::spool {
union Record;       // codec/spool_records.h
struct ThreadSlot;  // codec/spool_layout.h
}  // namespace lanescope::spool

extern "C" {

struct LanescopeOpenRange {
  std::uint64_t handle;
  std::uint32_t sequence;  // 0: was not recorded
  std::uint32_t index;
};
inline constexpr std::uint32_t kLanescopeStackDepth = 256;

struct LanescopePointerName {
  const void* pointer;
  std::uint32_t id;
};
struct LanescopeTextName {
  std::uint64_t hash;
  const char* text;  // in the process-wide table; never freed
  std::uint32_t size;
  std::uint32_t id;
};
inline constexpr std::uint32_t kLanescopePointerCache = 1024,
                               kLanescopeTextCache = 256;  // powers of two

// What is measured: indexes of LanescopeCost::ticks.
enum LanescopeCostKind {
  kLanescopeOperators,
  kLanescopeFrames,  // of Python
  kLanescopeRanges,  // that the program opens, steps included
  kLanescopeMemory,  // allocations and frees
  kLanescopeGpuCalls,
  kLanescopeCostKinds
};

// The cost of this thread's callbacks; see cost_meter.h. The thread writes, the budget reads.
// Relaxed: each sum is useful alone.
struct LanescopeCost {
  std::atomic<std::uint64_t> ticks[kLanescopeCostKinds];
  std::atomic<std::uint64_t> calls;                      // of operators
  std::atomic<std::uint64_t> left_out, left_out_ranges;  // short operators; ranges of the program
  std::uint32_t countdown, interval;  // calls until the next measured one; its start value
  std::uint32_t seed;
};

// In ticks; set before the first call is measured.
struct LanescopeCostScale {
  // By LanescopeCostKind: what a call costs outside of what it measures (unseen_cost.h).
  std::uint64_t unseen[kLanescopeCostKinds];
  // A call that seems to take longer was interrupted.
  std::uint64_t most;
};

// Where one thread writes. Only its thread touches it, except while that thread is outside the
// recorder (see `busy`). It is in pages that a forked child sees as zero (MADV_WIPEONFORK): there
// it is a writer without a chunk.
struct LanescopeWriter {
  // 1 while the owner is between its check of lanescope_recording and its last store. Closing a
  // window clears lanescope_recording, makes all threads' stores visible (membarrier), then waits
  // for 0 (acquire, pairs with the owner's release). So the owner needs no fence.
  std::atomic<std::uint32_t> busy;
  std::uint32_t capacity;  // count == capacity: full, or no chunk
  lanescope::spool::Record* first;
  // The next record's place, read and written as one word: the two are a range's token.
  std::uint32_t
      sequence;         // of the chunk; counts up during the whole life of the thread; 0: none yet
  std::uint32_t count;  // records in the chunk
  std::atomic<std::uint32_t>* used;  // in the chunk's header
  // Counts up with each change of the thread's open Python frames; null: nobody counts here.
  const std::uint64_t* frame_changes;
  // Open ranges of callers that keep no token, innermost last.
  std::uint32_t depth;
  std::uint32_t stack_window;  // the window the stack belongs to
  std::uint32_t lost_depth;    // open ranges beyond the stack; all are innermost
  std::uint32_t has_torch_tid;
  lanescope::spool::ThreadSlot* slot;  // null until the first chunk of a spool
  // So far one cache line: what each record needs.
  void* owner;  // for the recorder
  std::uint64_t torch_tid;
  std::uint32_t thread_number;  // of `slot`
  std::uint32_t chunks;         // that it had in this spool; only for the library
  struct LanescopeCost cost;
  struct LanescopeOpenRange stack[kLanescopeStackDepth];
  struct LanescopePointerName pointer_names[kLanescopePointerCache];
  struct LanescopeTextName text_names[kLanescopeTextCache];
};

// Number of the open window; 0: nothing is recorded. Opening and closing store with release, which
// pairs with the acquire loads in thread_writer.h.
LANESCOPE_RECORD_EXPORT extern std::atomic<std::uint32_t> lanescope_recording;
// LANESCOPE_RECORD_* (codec/record_options.h), the union of all open sessions. Written before
// lanescope_recording, so read after it.
LANESCOPE_RECORD_EXPORT extern std::atomic<std::uint32_t> lanescope_record_options;
// The budget leaves out operators that typically take fewer ticks; 0: none.
LANESCOPE_RECORD_EXPORT extern std::atomic<std::uint64_t> lanescope_short_operator_ticks;
// For everything without a scale of its own. Written once, before a session measures.
LANESCOPE_RECORD_EXPORT extern struct LanescopeCostScale lanescope_cost_scale;
// While it stays the same and is not 0, LanescopeWriter::frame_changes counts each change. Relaxed: a
// thread asks for its own frames only.
LANESCOPE_RECORD_EXPORT extern std::atomic<std::uint32_t> lanescope_frames_counted;
LANESCOPE_RECORD_EXPORT extern __thread struct LanescopeWriter* lanescope_thread_writer
    __attribute__((tls_model("initial-exec")));

LANESCOPE_RECORD_EXPORT std::uint32_t lanescope_record_abi() noexcept;
// Makes this thread's writer; null: impossible (the thread ends, no memory). Slow; once per thread.
LANESCOPE_RECORD_EXPORT struct LanescopeWriter* lanescope_attach_thread() noexcept;
// Gives away the full chunk and takes another. True: there is room for a record. No lock and no
// system call, except for a thread's first, small chunks in a spool.
LANESCOPE_RECORD_EXPORT bool lanescope_next_chunk(struct LanescopeWriter* writer) noexcept;
// Counts a lost record of a thread without a writer.
LANESCOPE_RECORD_EXPORT void lanescope_count_drop() noexcept;
// The id of a text, the same for the life of the process; 0 is the empty text. Takes a lock. Cut at
// kMaxTextBytes; when the table is full (64 MiB): the id of "(too many names)". `stored`, if not
// null, gets the table's own copy.
LANESCOPE_RECORD_EXPORT std::uint32_t lanescope_intern(const char* text, std::size_t size,
                                                       const char** stored) noexcept;
// torch's number of this thread, for "Fwd thread id".
LANESCOPE_RECORD_EXPORT void lanescope_set_torch_thread(std::uint64_t torch_tid) noexcept;

}  // extern "C"
