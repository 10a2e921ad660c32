// The interface of the torch observer: plain C, so that a program with any std::string can load it
// with dlopen() or ctypes.
//
// The observer is one source file, compiled against the user's torch; it links only
// liblanescope_record.so, libtorch_cpu and libc10. It sees every at::RecordFunction of the process
// (operators, autograd nodes, record_function, torch.compile's ranges), on all threads, and writes
// them with record/thread_writer.h. Once loaded, it stays loaded.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "lanescope/record/activity_source.h"

#define LANESCOPE_TORCH_OBSERVER_ABI 6u

extern "C" {

// Where a thread is in its Python program: its innermost frame and that frame's instruction.
// Both null: it has no frame. `mark` changes when the thread calls or leaves a Python function; 0: calls
// are not counted. `is_fixed` 1: the instruction stays the same until the mark changes, because the thread is
// in a call of a C function, or runs no Python code.
struct LanescopeStackPosition {
  const void* frame;
  const void* instruction;
  uint64_t mark;
  uint64_t is_fixed;
};
// The call stack of the calling thread as the id of a stack node (codec/op_details.h); 0: none. The
// caller passes an earlier position and the stack there (`known`). The function sets `position` to
// where the thread is now. Called in every
// operator's callback, with or without the GIL: takes no lock for a known stack, and never throws.
typedef uint32_t (*LanescopeStackFunction)(struct LanescopeStackPosition* position, uint32_t known);

// The LANESCOPE_TORCH_OBSERVER_ABI of this build. Ask first: the other functions depend on it.
LANESCOPE_RECORD_EXPORT uint32_t lanescope_torch_observer_abi(void);
// The torch version that it was compiled with, for example "2.13.0". Static storage.
LANESCOPE_RECORD_EXPORT const char* lanescope_torch_observer_built_for(void);
// Registers it as a source of the recorder. 0: it is registered, now or before. Else `line` (`size`
// bytes, ends with 0) says why not, and nothing changed. Any thread.
LANESCOPE_RECORD_EXPORT int lanescope_torch_observer_install(char* line, size_t size);
LANESCOPE_RECORD_EXPORT void lanescope_torch_observer_uninstall(void);
// Sets the function that gives call stacks, for windows that want them (LANESCOPE_RECORD_STACK);
// null: none, as after install. The function must stay callable.
LANESCOPE_RECORD_EXPORT void lanescope_torch_observer_stacks(LanescopeStackFunction capture);

// Records a tensor (spool::TensorRole: a parameter, a gradient, an optimizer's state) in the open
// window, if that window records the identities of tensors (op_tensors.h). `implementation` is a
// TensorImpl, in Python Tensor._cdata, that the caller keeps alive.
LANESCOPE_RECORD_EXPORT void lanescope_torch_observer_tensor(const void* implementation,
                                                             uint32_t role);

// 1 (the state after install): records the ranges of torch's lite interpreter and its static runtime
// around the operators that they call. 0: leaves these ranges out, and each node of a backward pass
// costs less. Any thread, at any time; operators that begin at that moment may be missing.
LANESCOPE_RECORD_EXPORT void lanescope_torch_observer_runtimes(int on);

// 1: while a window is open, tells torch that a profiler is active. Without it _RecordFunctionFast
// writes nothing, so the ranges of Inductor, Triton, Dynamo and AOTAutograd are missing. 0 (the
// state after install) is right for C++ programs: only Python code uses _RecordFunctionFast. Call
// it with 1 only after wrapping torch.profiler's start and stop as the next two functions need it.
LANESCOPE_RECORD_EXPORT void lanescope_torch_observer_announce(int on);
// torch keeps one "profiler state" per process and one per thread, and torch.profiler starts and
// stops only if it finds its own there. pause() removes ours from the process and from this thread;
// resume() puts them back where they are needed. Call pause() before and resume() after each of
// torch's _enable_profiler and _disable_profiler, on the same thread, recording or not. Both are
// cheap and may be called at any time.
LANESCOPE_RECORD_EXPORT void lanescope_torch_observer_pause(void);
LANESCOPE_RECORD_EXPORT void lanescope_torch_observer_resume(void);

}  // extern "C"
