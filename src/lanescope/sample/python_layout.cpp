#include "lanescope/sample/python_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>

namespace lanescope::sample {
namespace {

constexpr PythonLayout kPython39 = {
    .version = 0x0309,
    .interpreters_head = 32,
    .interpreter_next = 0,
    .threads_head = 8,
    .thread_next = 8,
    .pthread = 176,
    .frame = 24,
    .frame_previous = 24,
    .frame_code = 32,
    .frame_instruction = 104,
    .frame_bytes = 112,
    .frame_generator = 96,
    .code_file = 104,
    .code_name = 112,
    .code_first_line = 40,
    .code_lines = 120,
    .lines = LineTable::kLnotab,
    .ascii_header = 48,
    .text_header = 72,
    .gil_in_runtime = true,
    .gil_holder = 360,
    .gc_collecting = 816,
};

constexpr PythonLayout python310() {
  PythonLayout layout = kPython39;
  layout.version = 0x030a;
  layout.frame_instruction = 96;
  layout.frame_generator = 88;
  layout.lines = LineTable::kLines;
  return layout;
}

constexpr PythonLayout kPython311 = {
    .version = 0x030b,
    .interpreters_head = 40,
    .interpreter_next = 0,
    .threads_head = 16,
    .thread_next = 8,
    .pthread = 152,
    .native_id = 160,
    .frame = 56,
    .cframe_frame = 8,
    .chunk = 296,
    .chunk_top = 304,
    .frame_previous = 48,
    .frame_code = 32,
    .frame_instruction = 56,
    .frame_owner = 69,
    .frame_bytes = 80,
    .code_file = 112,
    .code_name = 120,
    .code_first_line = 72,
    .code_lines = 136,
    .code_bytecode = 184,
    .ascii_header = 48,
    .text_header = 72,
    .gil_in_runtime = true,
    .gil_holder = 368,
    .gc_collecting = 848,
};

constexpr PythonLayout kPython312 = {
    .version = 0x030c,
    .interpreters_head = 40,
    .interpreter_next = 0,
    .threads_head = 72,
    .thread_next = 8,
    .pthread = 136,
    .native_id = 144,
    .frame = 56,
    .cframe_frame = 0,
    .chunk = 232,
    .chunk_top = 240,
    .frame_previous = 8,
    .frame_code = 0,
    .frame_instruction = 56,
    .frame_owner = 70,
    .frame_bytes = 80,
    .first_foreign_owner = 3,
    .code_file = 112,
    .code_name = 120,
    .code_first_line = 68,
    .code_lines = 136,
    .code_bytecode = 192,
    .ascii_header = 40,
    .text_header = 56,
    .gil_holder = 1048,
    .gc_collecting = 312,
};

// _Py_DebugOffsets: 8 bytes of text, then numbers of 64 bits. The places of those that are needed,
// counted in numbers; later versions have more of them in between. `gc` and `gil_holder` are inside
// `interpreter`, `thread_id` is inside `thread`.
struct DebugPlaces {
  std::uint32_t version, interpreter, gc, gil_holder, thread, thread_id, frame, code, unicode,
      collecting;
};
constexpr DebugPlaces kPlaces313 = {0x030d, 6, 4, 12, 19, 5, 28, 34, 67, 72};
constexpr DebugPlaces kPlaces314 = {0x030e, 6, 5, 13, 22, 5, 31, 39, 77, 82};
constexpr DebugPlaces kPlaces315 = {0x030f, 6, 5, 13, 22, 8, 39, 47, 89, 95};
constexpr std::size_t kDebugNumbers = 96;

Error unknown_version(std::uint32_t version_hex) {
  return Error{Errc::kUnsupported,
               fmt::format("expected Python 3.9 to 3.15, found {}.{}; its stacks are not sampled",
                           version_hex >> 24, version_hex >> 16 & 0xff)};
}

Result<PythonLayout> layout_from(const std::array<std::uint64_t, kDebugNumbers>& numbers,
                                 const DebugPlaces& places) {
  const auto at = [&](std::uint32_t place) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(numbers[place], kNoOffset));
  };
  PythonLayout layout;
  layout.version = places.version;
  layout.interpreters_head = at(5);
  layout.interpreter_next = at(places.interpreter + 2);
  layout.threads_head = at(places.interpreter + 3);
  layout.thread_next = at(places.thread + 2);
  layout.frame = at(places.thread + 4);
  layout.pthread = at(places.thread + places.thread_id);
  layout.native_id = at(places.thread + places.thread_id + 1);
  layout.chunk = at(places.thread + places.thread_id + 2);
  layout.chunk_top = layout.chunk + 8;
  layout.frame_bytes = std::min(at(places.frame), 128u);
  layout.frame_previous = at(places.frame + 1);
  layout.frame_code = at(places.frame + 2);
  layout.frame_instruction = at(places.frame + 3);
  layout.frame_owner = at(places.frame + 5);
  layout.first_foreign_owner = 3;
  layout.code_file = at(places.code + 1);
  layout.code_name = at(places.code + 2);
  layout.code_lines = at(places.code + 4);
  layout.code_first_line = at(places.code + 5);
  layout.code_bytecode = at(places.code + 9);
  layout.ascii_header = at(places.unicode + 3);
  layout.text_header = layout.ascii_header + 16;
  layout.gil_holder = at(places.interpreter + places.gil_holder);
  layout.gc_collecting = at(places.interpreter + places.gc) + at(places.collecting);
  const auto fits = [](std::initializer_list<std::uint32_t> offsets, std::uint32_t limit) {
    return std::all_of(offsets.begin(), offsets.end(),
                       [limit](std::uint32_t offset) { return offset <= limit; });
  };
  if (!fits({layout.thread_next, layout.frame, layout.pthread, layout.native_id, layout.chunk,
             layout.code_file, layout.code_name, layout.code_lines, layout.code_first_line,
             layout.code_bytecode, layout.ascii_header},
            1024) ||
      !fits({layout.frame_previous, layout.frame_code, layout.frame_instruction},
            layout.frame_bytes - 8) ||
      !fits({layout.frame_owner}, layout.frame_bytes - 1) || layout.frame_bytes < 48 ||
      layout.ascii_header != 40)
    return Error{Errc::kUnsupported,
                 "expected CPython's own table of offsets (_Py_DebugOffsets), found numbers that "
                 "cannot be offsets; this Python's stacks are not sampled"};
  return layout;
}

}  // namespace

std::uint32_t PythonLayout::thread_bytes() const {
  std::uint32_t most = std::max({thread_next, pthread, frame});
  for (const std::uint32_t offset : {native_id, chunk, chunk_top})
    if (offset != kNoOffset) most = std::max(most, offset);
  return most + 8;
}

std::uint32_t PythonLayout::code_bytes() const {
  return std::max({code_file, code_name, code_lines, code_first_line}) + 8;
}

Result<PythonLayout> layout_of_version(std::uint32_t version_hex) {
  switch (version_hex >> 16) {
    case 0x0309:
      return kPython39;
    case 0x030a:
      return python310();
    case 0x030b:
      return kPython311;
    case 0x030c:
      return kPython312;
    default:
      return unknown_version(version_hex);
  }
}

Result<PythonLayout> find_layout(ProcessMemory& memory, std::uint64_t runtime,
                                 std::uint32_t version_hex) {
  std::array<std::uint64_t, kDebugNumbers> numbers{};
  const bool has_table = memory.read(runtime, numbers.data(), sizeof numbers) &&
                         std::memcmp(numbers.data(), "xdebugpy", 8) == 0;
  if (!has_table) {
    if (version_hex == 0)
      return Error{Errc::kUnsupported,
                   "expected Python 3.9 to 3.15, found an interpreter that does not say its "
                   "version; its stacks are not sampled"};
    return layout_of_version(version_hex);
  }
  if (numbers[2] != 0)
    return Error{Errc::kUnsupported,
                 "expected a Python with a GIL, found a free-threaded one; its stacks are not "
                 "sampled"};
  for (const DebugPlaces& places : {kPlaces313, kPlaces314, kPlaces315})
    if (numbers[1] >> 16 == places.version) return layout_from(numbers, places);
  return unknown_version(static_cast<std::uint32_t>(numbers[1]));
}

}  // namespace lanescope::sample
