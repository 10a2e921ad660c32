// The torch observer from outside: plain C, so that a program loads it with dlopen() and ctypes,
// whatever std::string it has.
//
// The observer is one source file, compiled against the torch it is used with, linking only
// liblanescope_record.so, libtorch_cpu and libc10. It sees every at::RecordFunction of the process
// (operators, autograd nodes, record_function, torch.compile's ranges), on all threads, and writes
// them with record/thread_writer.h. Once loaded it stays.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "lanescope/record/activity_source.h"

#define LANESCOPE_TORCH_OBSERVER_ABI 2u

extern "C" {

// Where a thread is in its Python program: its innermost frame and the instruction that one is at.
// Two nulls: nowhere.
struct LanescopeStackPosition {
  const void* frame;
  const void* instruction;
};
// The call stack of the calling thread as the id of a stack node (codec/op_details.h); 0: it has
// none. `position` goes in as a place whose stack is `known`, and is still the stack of everything
// at that place; it comes out as where the thread is. Called in every operator's callback, with or
// without Python's lock: it takes no lock for a stack met before, and throws nothing.
typedef uint32_t (*LanescopeStackFunction)(struct LanescopeStackPosition* position, uint32_t known);

// LANESCOPE_TORCH_OBSERVER_ABI of this build. Ask first; the other functions belong to that number.
LANESCOPE_RECORD_EXPORT uint32_t lanescope_torch_observer_abi(void);
// The torch version whose headers it was compiled with, for example "2.13.0". Static storage.
LANESCOPE_RECORD_EXPORT const char* lanescope_torch_observer_built_for(void);
// Makes it a source of the recorder. 0: done, or done before. Otherwise `line` (of `size` bytes,
// ends with 0) says in one line why not, and nothing changed. Any thread.
LANESCOPE_RECORD_EXPORT int lanescope_torch_observer_install(char* line, size_t size);
LANESCOPE_RECORD_EXPORT void lanescope_torch_observer_uninstall(void);
// Who knows call stacks, for windows that want them (LANESCOPE_RECORD_STACK); null: nobody, which
// is the state after install. The function must stay callable.
LANESCOPE_RECORD_EXPORT void lanescope_torch_observer_stacks(LanescopeStackFunction capture);

// 1: while a window is open, torch is told that a profiler is active. Without it
// _RecordFunctionFast writes nothing, so the ranges of Inductor, Triton, Dynamo and AOTAutograd are
// missing. 0 (the state after install) is right for C++ programs: only Python code uses
// _RecordFunctionFast. Call it with 1 only after wrapping torch.profiler's start and stop as the
// next two functions need it.
LANESCOPE_RECORD_EXPORT void lanescope_torch_observer_announce(int on);
// torch keeps one "profiler state" a process and one a thread, and torch.profiler starts and stops
// only when what it finds there is its own. step_aside() takes ours out of both (this thread's
// only), step_back() puts them where they are needed now. Call step_aside() before and step_back()
// after each of torch's _enable_profiler and _disable_profiler, on the same thread, recording or
// not. Both are cheap and may be called at any time.
LANESCOPE_RECORD_EXPORT void lanescope_torch_observer_step_aside(void);
LANESCOPE_RECORD_EXPORT void lanescope_torch_observer_step_back(void);

}  // extern "C"
