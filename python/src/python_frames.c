#include <Python.h>

#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030f0000 && !defined(Py_GIL_DISABLED) && \
    !defined(PYPY_VERSION) && defined(__has_include)
#if __has_include(<internal/pycore_frame.h>)
#define LANESCOPE_INTERNAL_FRAMES 1
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#if PY_VERSION_HEX >= 0x030c0000
#include <internal/pycore_code.h>
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe.h>
#include <internal/pycore_stackref.h>
#endif
#endif
#elif PY_VERSION_HEX < 0x030b0000 && !defined(PYPY_VERSION)
#define LANESCOPE_FRAME_OBJECTS 1
#include <frameobject.h>
#endif

#include "python_frames.h"

#if defined(LANESCOPE_INTERNAL_FRAMES) || defined(LANESCOPE_FRAME_OBJECTS)

static PyInterpreterState* home = NULL;

const char* lanescope_frames_unsupported(void) { return NULL; }
void lanescope_frames_home(void) { home = PyThreadState_Get()->interp; }

static inline uint64_t mixed(uint64_t hash, uint64_t word) {
  return lanescope_hash_on(hash, (const void*)(uintptr_t)word);
}
#define HASH_START 0x9e3779b97f4a7c15u

#ifdef LANESCOPE_INTERNAL_FRAMES

#if PY_VERSION_HEX >= 0x030e0000
#define CODE_OF(frame) ((const void*)PyStackRef_AsPyObjectBorrow((frame)->f_executable))
#define LOCAL_OF(frame, at) PyStackRef_AsPyObjectBorrow((frame)->localsplus[at])
#else
#define LOCAL_OF(frame, at) ((frame)->localsplus[at])
#if PY_VERSION_HEX >= 0x030d0000
#define CODE_OF(frame) ((const void*)(frame)->f_executable)
#else
#define CODE_OF(frame) ((const void*)(frame)->f_code)
#endif
#endif
#if PY_VERSION_HEX >= 0x030d0000
#define INSTRUCTION_OF(frame) ((const void*)(frame)->instr_ptr)
#else
#define INSTRUCTION_OF(frame) ((const void*)(frame)->prev_instr)
#endif
// The interpreter loop's own frame between C and Python, from 3.12 on.
#if PY_VERSION_HEX >= 0x030e0000
#define IS_SHIM(frame) ((frame)->owner >= FRAME_OWNED_BY_INTERPRETER)
#elif PY_VERSION_HEX >= 0x030c0000
#define IS_SHIM(frame) ((frame)->owner == FRAME_OWNED_BY_CSTACK)
#else
#define IS_SHIM(frame) 0
#endif

const void* lanescope_innermost_frame(const void** instruction) {
  PyThreadState* state = PyGILState_GetThisThreadState();
  if (!state || state->interp != home) return NULL;
#if PY_VERSION_HEX >= 0x030d0000
  const _PyInterpreterFrame* const frame = state->current_frame;
#else
  const _PyInterpreterFrame* const frame = state->cframe ? state->cframe->current_frame : NULL;
#endif
  if (frame) *instruction = INSTRUCTION_OF(frame);
  return frame;
}

const void* lanescope_frame_instruction(const void* frame) {
  return INSTRUCTION_OF((const _PyInterpreterFrame*)frame);
}

const void* lanescope_current_frame(void) {
#if PY_VERSION_HEX >= 0x030d0000
  return PyThreadState_GetUnchecked()->current_frame;
#else
  return _PyThreadState_UncheckedGet()->cframe->current_frame;
#endif
}

const void* lanescope_frame_of(const void* frame_object) {
  return ((const PyFrameObject*)frame_object)->f_frame;
}

const void* lanescope_outer_frame(const void* frame) {
  const _PyInterpreterFrame* outer = ((const _PyInterpreterFrame*)frame)->previous;
  while (outer && IS_SHIM(outer)) outer = outer->previous;
  return outer;
}

const void* lanescope_frame_code(const void* frame) {
  return CODE_OF((const _PyInterpreterFrame*)frame);
}

void lanescope_read_call(const void* frame_object, struct LanescopeCall* out) {
  const void* const frame =
      frame_object ? lanescope_frame_of(frame_object) : lanescope_current_frame();
  out->frame = frame;
  out->outer = lanescope_outer_frame(frame);
  out->at.code = lanescope_frame_code(frame);
  out->at.instruction = lanescope_frame_instruction(frame);
  out->outer_instruction = out->outer ? lanescope_frame_instruction(out->outer) : NULL;
}

const void* lanescope_first_argument(const void* frame) {
  const PyObject* object = LOCAL_OF((const _PyInterpreterFrame*)frame, 0);
  return object && PyCell_Check(object) ? ((const PyCellObject*)object)->ob_ref : object;
}

// The instruction is an address in the code object, so it identifies both.
uint64_t lanescope_hash_frames(const void* innermost, size_t most) {
  uint64_t sum = HASH_START;
  const _PyInterpreterFrame* frame = innermost;
  for (; frame; frame = frame->previous) {
    if (IS_SHIM(frame)) continue;
    if (most-- == 0) break;
    sum = mixed(sum, (uintptr_t)INSTRUCTION_OF(frame));
  }
  return sum ^ (frame != NULL);
}

size_t lanescope_walk_frames(const void* innermost, struct LanescopeFrame* out, size_t most,
                             int* is_cut) {
  size_t count = 0;
  const _PyInterpreterFrame* frame = innermost;
  for (; frame; frame = frame->previous) {
    if (IS_SHIM(frame)) continue;
    if (count == most) break;
    out[count].code = CODE_OF(frame);
    out[count].instruction = INSTRUCTION_OF(frame);
    ++count;
  }
  *is_cut = frame != NULL;
  return count;
}

int lanescope_frame_offset(const struct LanescopeFrame* frame, int* offset) {
  const PyObject* object = frame->code;
  if (!object || object->ob_type != &PyCode_Type) return -1;
  PyCodeObject* code = (PyCodeObject*)frame->code;
  const ptrdiff_t at = (const char*)frame->instruction - (const char*)_PyCode_CODE(code);
  const ptrdiff_t unit = (ptrdiff_t)sizeof(_Py_CODEUNIT);
  if (at < code->_co_firsttraceable * unit || at >= Py_SIZE(code) * unit) return 0;
  *offset = (int)at;
  return 1;
}

// ---- the location table: entries of (first byte, line delta, columns), one after another
// ---------

struct Bytes {
  const unsigned char *at, *end;
};

static unsigned take_byte(struct Bytes* bytes) { return bytes->at < bytes->end ? *bytes->at++ : 0; }

static unsigned take_number(struct Bytes* bytes) {  // 6 bits a byte, lowest first; 64: more follow
  unsigned value = 0;
  for (unsigned shift = 0; shift < 30; shift += 6) {
    const unsigned byte = take_byte(bytes);
    value |= (byte & 63) << shift;
    if (!(byte & 64)) break;
  }
  return value;
}

static int take_signed(struct Bytes* bytes) {
  const unsigned value = take_number(bytes);
  return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
}

// Not PyCode_Addr2Line(): from 3.14 on that looks into what sys.monitoring may be changing.
int lanescope_line_of(const void* object, int offset) {
  const PyCodeObject* code = object;
  struct Bytes bytes;
  bytes.at = (const unsigned char*)PyBytes_AS_STRING(code->co_linetable);
  bytes.end = bytes.at + PyBytes_GET_SIZE(code->co_linetable);
  int line = code->co_firstlineno, end = 0;
  while (bytes.at < bytes.end) {
    const unsigned first = take_byte(&bytes);
    const unsigned form = (first >> 3) & 15;
    int has_line = 1;
    if (form == 15) {
      has_line = 0;
    } else if (form == 14) {  // line, last line, columns
      line += take_signed(&bytes);
      take_number(&bytes), take_number(&bytes), take_number(&bytes);
    } else if (form == 13) {
      line += take_signed(&bytes);
    } else if (form >= 10) {
      line += (int)form - 10;
      take_byte(&bytes), take_byte(&bytes);
    } else {
      take_byte(&bytes);
    }
    end += (int)((first & 7) + 1) * (int)sizeof(_Py_CODEUNIT);
    if (offset < end) return has_line ? line : 0;
  }
  return 0;
}

#else  // frame objects: 3.9 and 3.10

#define FRAME_OF(frame) ((PyFrameObject*)(uintptr_t)(frame))

const void* lanescope_innermost_frame(const void** instruction) {
  PyThreadState* state = PyGILState_GetThisThreadState();
  const void* const frame = state && state->interp == home ? state->frame : NULL;
  if (frame) *instruction = lanescope_frame_instruction(frame);
  return frame;
}

const void* lanescope_frame_instruction(const void* frame) {
  return (const void*)(intptr_t)FRAME_OF(frame)->f_lasti;
}

const void* lanescope_current_frame(void) { return _PyThreadState_UncheckedGet()->frame; }
const void* lanescope_frame_of(const void* frame_object) { return frame_object; }
const void* lanescope_outer_frame(const void* frame) { return FRAME_OF(frame)->f_back; }
const void* lanescope_frame_code(const void* frame) { return FRAME_OF(frame)->f_code; }
void lanescope_read_call(const void* frame_object, struct LanescopeCall* out) {
  const void* const frame = frame_object ? frame_object : lanescope_current_frame();
  out->frame = frame;
  out->outer = lanescope_outer_frame(frame);
  out->at.code = lanescope_frame_code(frame);
  out->at.instruction = lanescope_frame_instruction(frame);
  out->outer_instruction = out->outer ? lanescope_frame_instruction(out->outer) : NULL;
}
const void* lanescope_first_argument(const void* frame) {
  const PyObject* object = FRAME_OF(frame)->f_localsplus[0];
  return object && PyCell_Check(object) ? ((const PyCellObject*)object)->ob_ref : object;
}

uint64_t lanescope_hash_frames(const void* innermost, size_t most) {
  uint64_t sum = HASH_START;
  const PyFrameObject* frame = innermost;
  for (; frame && most > 0; frame = frame->f_back, --most)
    sum = mixed(mixed(sum, (uintptr_t)frame->f_code), (uint64_t)(int64_t)frame->f_lasti);
  return sum ^ (frame != NULL);
}

size_t lanescope_walk_frames(const void* innermost, struct LanescopeFrame* out, size_t most,
                             int* is_cut) {
  size_t count = 0;
  const PyFrameObject* frame = innermost;
  for (; frame && count < most; frame = frame->f_back, ++count) {
    out[count].code = frame->f_code;
    out[count].instruction = (const void*)(intptr_t)frame->f_lasti;
  }
  *is_cut = frame != NULL;
  return count;
}

int lanescope_frame_offset(const struct LanescopeFrame* frame, int* offset) {
  const int at = (int)(intptr_t)frame->instruction;
  if (at < 0) return 0;
#if PY_VERSION_HEX >= 0x030a0000
  *offset = at * (int)sizeof(_Py_CODEUNIT);  // 3.10 counts instructions
#else
  *offset = at;
#endif
  return 1;
}

// Reads the code object's constant tables, nothing else, in these versions.
int lanescope_line_of(const void* code, int offset) {
  return PyCode_Addr2Line((PyCodeObject*)(uintptr_t)code, offset);
}

#endif

// ---- code objects that go -----------------------------------------------------------------------

static void (*on_destroyed)(const void* code) = NULL;

#if PY_VERSION_HEX >= 0x030c0000

static int watch(PyCodeEvent event, PyCodeObject* code) {
  if (event == PY_CODE_EVENT_DESTROY) on_destroyed(code);
  return 0;
}

int lanescope_watch_code(void (*destroyed)(const void* code)) {
  on_destroyed = destroyed;
  if (PyCode_AddWatcher(watch) >= 0) return 0;
  PyErr_Clear();
  return 1;
}

#else  // no watchers yet: the type's own destructor is wrapped

static destructor destroy_code = NULL;

static void destroy_watched(PyObject* code) {
  on_destroyed(code);
  destroy_code(code);
}

int lanescope_watch_code(void (*destroyed)(const void* code)) {
  on_destroyed = destroyed;
  destroy_code = PyCode_Type.tp_dealloc;
  PyCode_Type.tp_dealloc = destroy_watched;
  return 0;
}

#endif

#else  // not this Python

const char* lanescope_frames_unsupported(void) {
#if defined(Py_GIL_DISABLED)
  return "this lanescope does not read the stacks of a free-threaded Python";
#elif PY_VERSION_HEX >= 0x030f0000
  return "this lanescope reads the stacks of Python 3.9 to 3.14, and this one is newer";
#else
  return "lanescope was built without CPython's internal headers, which reading stacks needs";
#endif
}
void lanescope_frames_home(void) {}
const void* lanescope_innermost_frame(const void** instruction) { return (void)instruction, NULL; }
const void* lanescope_frame_instruction(const void* frame) { return frame; }
const void* lanescope_current_frame(void) { return NULL; }
const void* lanescope_frame_of(const void* frame_object) { return frame_object; }
const void* lanescope_outer_frame(const void* frame) { return (void)frame, NULL; }
const void* lanescope_frame_code(const void* frame) { return frame; }
const void* lanescope_first_argument(const void* frame) { return (void)frame, NULL; }
void lanescope_read_call(const void* frame_object, struct LanescopeCall* out) {
  (void)frame_object;
  out->frame = out->outer = out->at.code = out->at.instruction = out->outer_instruction = NULL;
}
uint64_t lanescope_hash_frames(const void* frame, size_t most) {
  (void)frame, (void)most;
  return 0;
}
size_t lanescope_walk_frames(const void* frame, struct LanescopeFrame* out, size_t most,
                             int* is_cut) {
  (void)frame, (void)out, (void)most;
  *is_cut = 0;
  return 0;
}
int lanescope_frame_offset(const struct LanescopeFrame* frame, int* offset) {
  (void)frame, (void)offset;
  return -1;
}
int lanescope_line_of(const void* code, int offset) {
  (void)code, (void)offset;
  return 0;
}
int lanescope_watch_code(void (*destroyed)(const void* code)) {
  (void)destroyed;
  return 1;
}

#endif
