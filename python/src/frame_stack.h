// The open Python frames of a thread: a stack of (frame, range).
//
// Frames come and go out of order if greenlets switch, and events are missing if another profiler
// removes the hook. So each event says which frame it is about, and frames above that one end with
// it. At a thread's first event in a window, the frames that are already open are written as if
// they had begun with the window. All of it with the GIL, and only for the calling thread.
#pragma once
#include <Python.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "frame_names.h"
#include "lanescope/record/thread_writer.h"
#include "python_frames.h"

namespace lanescope::python::frames {

constexpr std::uint32_t kFrameOptions = LANESCOPE_RECORD_STACK | LANESCOPE_RECORD_MODULES;
constexpr std::size_t kMostOpen = 4096;    // frames of a thread; deeper ones are counted
constexpr std::size_t kMostAtStart = 256;  // that were open before; further out is left out

// A Python frame by its address, a call of a C function by that of its caller plus one.
using Key = std::uintptr_t;
inline Key key_of(const void* frame) { return reinterpret_cast<Key>(frame); }
inline Key key_of_c_call(const void* caller) { return key_of(caller) | 1; }
inline Key frame_of_key(Key key) { return key & ~Key{1}; }

struct OpenFrame {
  Key key;
  // Of the range's token, in one word: a short call ends before two stores could be read as one.
  std::uint64_t place;
  // Of the Python frames around the one of `key`: an operator's stack needs no walk through them.
  std::uint64_t callers_hash;
  OpenFrame() = default;  // sets nothing
  OpenFrame(Key of, record::RangeToken token, std::uint64_t callers)
      : key(of), place(std::bit_cast<std::uint64_t>(token)), callers_hash(callers) {}
  record::RangeToken token() const { return std::bit_cast<record::RangeToken>(place); }
};

struct ThreadFrames {
  std::uint32_t window = ~std::uint32_t{0};  // that `open` belongs to; at first none
  std::uint32_t count = 0;                   // of `open`
  std::size_t lost = 0;                      // open ones beyond kMostOpen
  std::uint64_t events = 0;   // counts up whenever `open` changes: LanescopeWriter::frame_changes
  Key import = 0;             // the outermost open import, when what it runs is left out
  OpenFrame open[kMostOpen];  // not set at first, so that unused pages take no memory
  OpenFrame& last() { return open[count - 1]; }
};

// Of every function, and by a session without a budget, which may leave them out at any time.
inline bool are_all_frames_wanted(std::uint32_t options) {
  return (options & (LANESCOPE_RECORD_STACK | LANESCOPE_RECORD_MEASURE)) == LANESCOPE_RECORD_STACK;
}

inline __thread ThreadFrames* thread_frames __attribute__((tls_model("initial-exec"))) = nullptr;

// record::frame_mark() of this thread; 0 where not every change is counted. Without the GIL, too.
inline std::uint64_t frame_mark() {
  const ThreadFrames* const thread = thread_frames;
  const LanescopeWriter* const writer = lanescope_thread_writer;
  if (!thread || !writer || (thread->lost | thread->import) != 0 ||
      thread->window != lanescope_recording.load(std::memory_order_relaxed) ||
      !are_all_frames_wanted(record::record_options()))
    return 0;
  return record::frame_mark(writer);
}

// Hash of the stack from `frame` outwards, which is at `instruction`, where `mark` is this thread's
// frame_mark(); nothing when its callers' hash is not known. Without the GIL, too.
inline std::optional<std::uint64_t> hash_of_stack(std::uint64_t mark, const void* frame,
                                                  const void* instruction) {
  const ThreadFrames* const thread = thread_frames;
  if (mark == 0 || thread->count == 0) return std::nullopt;
  const OpenFrame& last = thread->open[thread->count - 1];
  if (frame_of_key(last.key) != key_of(frame)) return std::nullopt;
  return lanescope_hash_on(last.callers_hash, instruction);
}

// The frame whose call of a C function is the innermost open one, where `mark` is this thread's
// frame_mark(), and the hash of its callers; a null frame: there is no such call. Without the GIL, too.
struct InnermostCCall {
  const void* frame = nullptr;
  std::uint64_t callers_hash = 0;
};
inline InnermostCCall innermost_c_call(std::uint64_t mark) {
  const ThreadFrames* const thread = thread_frames;
  if (mark == 0 || thread->count == 0) return {};
  const OpenFrame& last = thread->open[thread->count - 1];
  const Key frame = frame_of_key(last.key);
  if (last.key == frame) return {};
  return {reinterpret_cast<const void*>(frame), last.callers_hash};
}

// frame_mark() of a thread that runs no Python code, which then notes that nothing is open; 0 also
// where that is not known. Allocates once in a thread. Without the GIL.
std::uint64_t mark_without_frames();

// From now on changes are counted, or no longer. Only from 3.12 on, where a thread cannot lose its
// hook. With the GIL.
void count_changes(bool on);

// The last place whose key `is` says; nothing when there is none.
template <typename Is>
std::optional<std::uint32_t> find_open(const ThreadFrames& thread, const Is& is) {
  for (std::uint32_t at = thread.count; at-- > 0;)
    if (is(thread.open[at].key)) return at;
  return std::nullopt;
}

// Begins a frame that is called now, or was already open (`began`, in ticks). Counts too deep ones.
void push(ThreadFrames& thread, Key key, record::RangeInfo info, std::uint64_t began = 0);
void push_frame(ThreadFrames& thread, const void* frame, std::uint32_t options,
                std::uint64_t began = 0);
// Ends what lies above `count` frames.
void pop_to(ThreadFrames& thread, std::uint32_t count);
// Ends the frame or C call with that key, and what lies above it. Does nothing if it is not there.
void leave(ThreadFrames& thread, Key key);
// Ends what lies above `caller`. Does nothing if it is not there: it is another greenlet's.
void match_caller(ThreadFrames& thread, const void* caller);
// This thread's frames if an event about one of them is to be noted, else null. `known`: the frame
// that is already open, if this is the thread's first event of the window.
ThreadFrames* ready(std::uint32_t options, const void* known);
// Since which tick this thread has frames, for its first event of the window.
void set_frames_began(std::uint64_t ticks);
std::unordered_map<PyThreadState*, std::uint64_t>& hooked_threads();

}  // namespace lanescope::python::frames
