// Byte offsets in CPython's structures, by version: where to find the data that make up a stack.
//
// 3.9 to 3.12: rows of a table; tools/print_python_layout.c prints such a row from the headers of an
// interpreter, and a test compares them. From 3.13 on the interpreter itself has a table of offsets
// (_Py_DebugOffsets, the first bytes of _PyRuntime). Only 64-bit release builds.
#pragma once
#include <cstdint>

#include "lanescope/base/result.h"
#include "lanescope/sample/process_memory.h"

namespace lanescope::sample {

inline constexpr std::uint32_t kNoOffset = 0xffffffff;

// How a code object's table of lines is written.
enum class LineTable : std::uint8_t {
  kLnotab,     // 3.9
  kLines,      // 3.10, PEP 626
  kLocations,  // from 3.11 on
};

inline constexpr std::uint8_t kOwnedByGenerator = 1;

struct PythonLayout {
  std::uint32_t version = 0;            // PY_VERSION_HEX >> 16: 0x030b is 3.11
  std::uint32_t interpreters_head = 0;  // in _PyRuntime
  std::uint32_t interpreter_next = 0, threads_head = 0;
  // Fields of a thread's state. `frame` leads to the innermost frame; in 3.11 and 3.12 to a structure that
  // has it at `cframe_frame`.
  std::uint32_t thread_next = 0, pthread = 0, native_id = kNoOffset;
  std::uint32_t frame = 0, cframe_frame = kNoOffset;
  std::uint32_t chunk = kNoOffset, chunk_top = kNoOffset;  // of the memory for frames
  // Fields of a frame.
  std::uint32_t frame_previous = 0, frame_code = 0, frame_instruction = 0;
  std::uint32_t frame_owner = kNoOffset, frame_bytes = 0;
  // How a generator's frame is known: from 3.11 on its owner is kOwnedByGenerator; before, the frame has a
  // pointer to the generator at this offset.
  std::uint32_t frame_generator = kNoOffset;
  std::uint8_t first_foreign_owner = 0xff;  // owners from here on have no Python code
  // Fields of a code object.
  std::uint32_t code_file = 0, code_name = 0, code_first_line = 0, code_lines = 0;
  std::uint32_t code_bytecode = kNoOffset;  // kNoOffset: an instruction is a number, no address
  LineTable lines = LineTable::kLocations;
  // The bytes of a str's header, if it is ASCII and if it is not.
  std::uint32_t ascii_header = 0, text_header = 0;

  // The lock of the interpreter, from its field `last_holder` on: in _PyRuntime or in the
  // interpreter's state. Whether garbage is being collected: in the interpreter's state.
  bool gil_in_runtime = false;
  std::uint32_t gil_holder = 0, gc_collecting = 0;

  // How much of these structures is read.
  std::uint32_t thread_bytes() const;
  std::uint32_t code_bytes() const;
};

// The layout of Python 3.9 to 3.12. kUnsupported: another version.
Result<PythonLayout> layout_of_version(std::uint32_t version_hex);

// The layout of the interpreter whose _PyRuntime is at `runtime`. `version_hex`: what is known of its version,
// 0: nothing, which is enough from 3.13 on. kUnsupported: a version that is not known, a
// free-threaded build.
Result<PythonLayout> find_layout(ProcessMemory& memory, std::uint64_t runtime,
                                 std::uint32_t version_hex);

}  // namespace lanescope::sample
