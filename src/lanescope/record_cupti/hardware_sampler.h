// The process that samples GPUs for a recorded program: `lanescope _hardware`. It writes
// codec/counter_file.h, and ends when its standard input ends or its parent is gone. A process of
// its own, so that the program's launches are not slowed down.
//
// When `path` ends with a slash, it names a folder, and several programs of a host share this process.
// Each GPU has a file there, <number>.counters. The process goes on when the program that started it
// has ended, and removes the folder at its end. A program that keeps a file has made a hard link to it.
#pragma once
#include <stdint.h>

#include "lanescope/record_cupti/cupti_source.h"

extern "C" {

struct LanescopeHardwareOptions {
  const char* path;           // of the file, which is made or emptied; or of a folder that exists
  const char* devices;        // CUDA's numbers, joined by commas; "": all that are visible
  uint64_t interval_ns;       // of counters
  uint64_t slow_interval_ns;  // of clocks, power and temperature
  uint64_t most_bytes;        // the file grows no further
};

// Prints one line: "ready" when it samples, followed by what is missing; or "none: " and why there
// are no hardware lanes. Returns the exit code.
LANESCOPE_CUPTI_EXPORT int lanescope_hardware_main(const LanescopeHardwareOptions* options);

}  // extern "C"
