// Finds the CPython in a running process, from its mapped files.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "lanescope/base/result.h"
#include "lanescope/sample/process_memory.h"

namespace lanescope::sample {

struct FoundPython {
  std::uint64_t runtime = 0;      // address of _PyRuntime
  std::uint32_t version_hex = 0;  // PY_VERSION_HEX, or its first two numbers; 0: not known
  std::string file;               // that has the interpreter: python3.11 or libpython3.11.so.1.0
};

// kUnavailable: no such process, no permission, or no Python in it; the message says what to do.
// Costs reading the symbols of the interpreter's file, some megabytes.
Result<FoundPython> find_python(pid_t pid, RunningProcess& memory);

// "/usr/lib/libpython3.11.so.1.0" and "/usr/bin/python3.11": 0x030b0000; else 0.
std::uint32_t version_in_name(std::string_view path);

// What to do about an errno of RunningProcess::refusal(), as the end of a message.
std::string advice_on(int refusal, pid_t pid);

}  // namespace lanescope::sample
