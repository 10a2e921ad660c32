// The Python frames of the calling thread, read without the GIL: everything that depends on the
// version of CPython. Plain C, because CPython's internal headers are.
//
// Why it is safe, and which versions: docs/decisions/python_stacks.md. No function here takes the
// GIL, changes a reference count, allocates, or may be called for another thread.
#ifndef LANESCOPE_PYTHON_FRAMES_H
#define LANESCOPE_PYTHON_FRAMES_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// One frame: its code object and the instruction it is at (an address; before Python 3.11 an
// offset). Both compare equal while the code object lives.
struct LanescopeFrame {
  const void* code;
  const void* instruction;
};

// Why frames cannot be read in this build of Python: one line; null when they can.
const char* lanescope_frames_unsupported(void);

// Remembers the interpreter whose threads are read; with the GIL, once.
void lanescope_frames_home(void);

// This thread's innermost frame, for the walks, and its instruction; null when it runs no Python
// code. What it points to stays valid until the thread goes on in Python.
const void* lanescope_innermost_frame(const void** instruction);

// The instruction that frame is at.
const void* lanescope_frame_instruction(const void* frame);

// For recorded frames, with the GIL. In this order: as lanescope_innermost_frame(), for a thread
// that is known to belong to the home interpreter; the frame that a profile hook is called with (a
// PyFrameObject); the frame around a frame; its code object; its first argument, borrowed, or null.
const void* lanescope_current_frame(void);
const void* lanescope_frame_of(const void* frame_object);
const void* lanescope_outer_frame(const void* frame);
const void* lanescope_frame_code(const void* frame);
const void* lanescope_first_argument(const void* frame);

// All that a hook needs to know when a function is called, in one call.
struct LanescopeCall {
  const void *frame, *outer;
  struct LanescopeFrame at;
  const void* outer_instruction;  // null without `outer`
};
// `frame_object`: what a profile hook is called with; null: lanescope_current_frame().
void lanescope_read_call(const void* frame_object, struct LanescopeCall* out);

// A 64-bit hash of up to `most` frames from `frame` outwards and of whether there are more. Some
// 1.5 ns a frame.
uint64_t lanescope_hash_frames(const void* frame, size_t most);
// Goes on from the hash of a frame's callers to that of the frame as well. Different from the one of
// lanescope_hash_frames(), and as good.
static inline uint64_t lanescope_hash_on(uint64_t callers, const void* instruction) {
  __extension__ typedef unsigned __int128 Wide;
  const Wide product = (Wide)(callers ^ (uintptr_t)instruction) * 0xd6e8feb86659fd93u;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}
// The same frames into `out`; returns their number. *is_cut: there are more.
size_t lanescope_walk_frames(const void* frame, struct LanescopeFrame* out, size_t most,
                             int* is_cut);

// 1: *offset is the byte offset of the frame's instruction; 0: the frame has a code object and has
// not begun yet; -1: it has none. While the frame is on this thread's stack.
int lanescope_frame_offset(const struct LanescopeFrame* frame, int* offset);

// The line of the instruction at that byte offset; 0: it has none.
int lanescope_line_of(const void* code, int offset);

// Calls `destroyed` whenever a code object is destroyed, with the GIL, before its memory is freed.
// With the GIL, once. 0: done.
int lanescope_watch_code(void (*destroyed)(const void* code));

#ifdef __cplusplus
}
#endif
#endif
