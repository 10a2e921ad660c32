// Prints the offsets of src/lanescope/sample/python_layout.cpp for the CPython 3.9 to 3.12 whose headers
// it is compiled with, a line each:
//   cc -I$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))') tools/print_python_layout.c && ./a.out
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#else
#include <frameobject.h>
#include <internal/pycore_pystate.h>
#endif
#include <stddef.h>
#include <stdio.h>

static void show(const char* name, size_t offset) { printf("%s %zu\n", name, offset); }

int main(void) {
  show("interpreters_head", offsetof(_PyRuntimeState, interpreters.head));
  show("interpreter_next", offsetof(PyInterpreterState, next));
  show("thread_next", offsetof(PyThreadState, next));
  show("pthread", offsetof(PyThreadState, thread_id));
  show("code_file", offsetof(PyCodeObject, co_filename));
  show("code_name", offsetof(PyCodeObject, co_name));
  show("code_first_line", offsetof(PyCodeObject, co_firstlineno));
  show("ascii_header", sizeof(PyASCIIObject));
  show("text_header", sizeof(PyCompactUnicodeObject));
  show("gc_collecting", offsetof(PyInterpreterState, gc.collecting));
#if PY_VERSION_HEX >= 0x030c0000
  show("gil_holder", offsetof(PyInterpreterState, _gil.last_holder));
#else
  show("gil_holder", offsetof(_PyRuntimeState, ceval.gil.last_holder));
#endif
#if PY_VERSION_HEX >= 0x030b0000
  show("threads_head", offsetof(PyInterpreterState, threads.head));
  show("native_id", offsetof(PyThreadState, native_thread_id));
  show("frame", offsetof(PyThreadState, cframe));
  show("cframe_frame", offsetof(_PyCFrame, current_frame));
  show("chunk", offsetof(PyThreadState, datastack_chunk));
  show("chunk_top", offsetof(PyThreadState, datastack_top));
  show("frame_previous", offsetof(_PyInterpreterFrame, previous));
  show("frame_code", offsetof(_PyInterpreterFrame, f_code));
  show("frame_instruction", offsetof(_PyInterpreterFrame, prev_instr));
  show("frame_owner", offsetof(_PyInterpreterFrame, owner));
  show("code_lines", offsetof(PyCodeObject, co_linetable));
  show("code_bytecode", offsetof(PyCodeObject, co_code_adaptive));
#else
  show("threads_head", offsetof(PyInterpreterState, tstate_head));
  show("frame", offsetof(PyThreadState, frame));
  show("frame_previous", offsetof(PyFrameObject, f_back));
  show("frame_code", offsetof(PyFrameObject, f_code));
  show("frame_instruction", offsetof(PyFrameObject, f_lasti));
  show("frame_generator", offsetof(PyFrameObject, f_gen));
#if PY_VERSION_HEX >= 0x030a0000
  show("code_lines", offsetof(PyCodeObject, co_linetable));
#else
  show("code_lines", offsetof(PyCodeObject, co_lnotab));
#endif
#endif
  return 0;
}
