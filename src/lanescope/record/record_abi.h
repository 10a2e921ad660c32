// The plain-C border of liblanescope_record.so. Code compiled on another machine, or with another
// std::string (the torch observer, with _GLIBCXX_USE_CXX11_ABI=0), uses only this, thread_writer.h
// and activity_source.h.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lanescope/codec/spool_layout.h"

#define LANESCOPE_RECORD_EXPORT __attribute__((visibility("default")))
// Changes with any change of LanescopeWriter, Record or the functions below. Compare with
// lanescope_record_abi() before anything else: LANESCOPE_RECORD_ABI is what the header says, the
// function what the loaded library says.
#define LANESCOPE_RECORD_ABI 4u

// What to record beyond names and times; union over the open sessions.
#define LANESCOPE_RECORD_SHAPES 1u
#define LANESCOPE_RECORD_MEMORY 2u
#define LANESCOPE_RECORD_STACK 4u
#define LANESCOPE_RECORD_FLOPS 8u
#define LANESCOPE_RECORD_MODULES 16u
#define LANESCOPE_RECORD_OVERLOAD_NAMES 32u
#define LANESCOPE_RECORD_ALL_API \
  64u  // every call of the CUDA runtime and driver, not only those that matter
#define LANESCOPE_RECORD_DETACH \
  128u  // CUPTI leaves the process when a window closes, and comes back with the next one
#define LANESCOPE_RECORD_DETACH_WHERE_TESTED \
  256u  // the same, with versions of CUDA under which it was tried
#define LANESCOPE_RECORD_MEASURE \
  512u  // sources measure what they cost (cost_meter.h), because a session has a budget
#define LANESCOPE_RECORD_PAUSED \
  1024u  // only ranges that the program itself opens, no operators: the budget is used up

#define LANESCOPE_ACTIVITY_CPU 1u
#define LANESCOPE_ACTIVITY_CUDA 2u

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

// What this thread's callbacks cost; see cost_meter.h. Written by the thread, read by the one who
// keeps to the budget: relaxed, each sum is of use on its own.
struct LanescopeCost {
  std::atomic<std::uint64_t> ticks, calls;
  std::uint32_t countdown, interval;  // calls until the next measured one; what it was at first
  std::uint32_t seed;
};

// One thread's place to write. Only its thread touches it, except while that thread is known to be
// outside (see `busy`). Lives in pages that a forked child sees as zero (MADV_WIPEONFORK): there it
// is a writer without a chunk.
struct LanescopeWriter {
  // 1 while the owner is between its check of lanescope_recording and its last store. The one who
  // closes a window first clears lanescope_recording, then makes all threads' stores visible
  // (membarrier), then waits for 0 (acquire, pairs with the owner's release). So the owner needs no
  // fence.
  std::atomic<std::uint32_t> busy;
  std::uint32_t
      sequence;  // of the chunk below, counts up over the whole life of the thread; 0: none yet
  lanescope::spool::Record* first;
  std::uint32_t count;                 // records in the chunk
  std::uint32_t capacity;              // count == capacity: full, or no chunk
  std::atomic<std::uint32_t>* used;    // in the chunk's header
  lanescope::spool::ThreadSlot* slot;  // null until the first chunk of a spool
  void* owner;                         // the recorder's bookkeeping
  // Ranges opened by callers that keep no token, innermost last.
  std::uint32_t depth;
  std::uint32_t lost_depth;     // opened beyond the stack; they are all innermost
  std::uint32_t stack_window;   // the window the stack belongs to
  std::uint32_t thread_number;  // of `slot`
  std::uint64_t torch_tid;
  std::uint32_t has_torch_tid;
  std::uint32_t chunks;  // had in this spool; the library's own
  struct LanescopeCost cost;
  struct LanescopeOpenRange stack[kLanescopeStackDepth];
  struct LanescopePointerName pointer_names[kLanescopePointerCache];
  struct LanescopeTextName text_names[kLanescopeTextCache];
};

// Number of the open window, 0: nothing is recorded. Release by who opens or closes it; pairs with
// the acquire loads in thread_writer.h.
LANESCOPE_RECORD_EXPORT extern std::atomic<std::uint32_t> lanescope_recording;
// LANESCOPE_RECORD_* of the open sessions. Written before lanescope_recording, so read after it.
LANESCOPE_RECORD_EXPORT extern std::atomic<std::uint32_t> lanescope_record_options;
LANESCOPE_RECORD_EXPORT extern __thread struct LanescopeWriter* lanescope_thread_writer
    __attribute__((tls_model("initial-exec")));

LANESCOPE_RECORD_EXPORT std::uint32_t lanescope_record_abi() noexcept;
// Makes this thread's writer; null when that is impossible (the thread ends, no memory). Slow: once
// a thread.
LANESCOPE_RECORD_EXPORT struct LanescopeWriter* lanescope_attach_thread() noexcept;
// Hands in the full chunk and takes another: true when there is room for a record. Takes no lock
// and makes no system call, except for a thread's first chunks of a spool, which are small.
LANESCOPE_RECORD_EXPORT bool lanescope_next_chunk(struct LanescopeWriter* writer) noexcept;
// Counts a record that could not be kept on a thread without a writer.
LANESCOPE_RECORD_EXPORT void lanescope_count_drop() noexcept;
// The id of a text, the same for the life of the process; 0 is the empty text. Takes a lock. Cut at
// kMaxTextBytes; when the table is full (64 MiB): the id of "(too many names)". `stored`, if not
// null, gets the table's own copy.
LANESCOPE_RECORD_EXPORT std::uint32_t lanescope_intern(const char* text, std::size_t size,
                                                       const char** stored) noexcept;
// torch's number of this thread, for "Fwd thread id".
LANESCOPE_RECORD_EXPORT void lanescope_set_torch_thread(std::uint64_t torch_tid) noexcept;

}  // extern "C"
