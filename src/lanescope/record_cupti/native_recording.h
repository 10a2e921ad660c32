// Records a whole process that knows nothing of lanescope, from the start of its CUDA driver to its
// exit. `lanescope record -- PROGRAM` sets the environment, the driver loads the library,
// InitializeInjection() calls start_native_recording().
//
//   LANESCOPE_RECORD_NATIVE=1        wanted; every other variable is read only together with it
//   LANESCOPE_RECORD_OWNER=0000000000  overwritten, in place, with the process id of the process
//                                    that records; its children see it and leave themselves alone
//   LANESCOPE_RECORD_CHILDREN=1      they record themselves, too
//   LANESCOPE_RECORD_DIR             folder of the results; default lanescope_traces
//   LANESCOPE_RECORD_PROGRAM         names the results; default: the program's own name, and the
//                                    rank in RANK
//   LANESCOPE_RECORD_STARTED         when the run started, for the names; default: now
//   LANESCOPE_RECORD_RANK            with _PROGRAM: the rank
//   LANESCOPE_RECORD_PARENT_RANK     RANK of the recorded process that started this one, which is
//                                    not that rank
//   LANESCOPE_RECORD_ACTIVITIES      "cpu,cuda" or one of them; default both
//   LANESCOPE_RECORD_SHAPES, _MEMORY, _ALL_API, _GZIP, _KEEP_SPOOL, _QUIET   =1
//   LANESCOPE_RECORD_COMMAND         the lanescope executable, which turns the recording into
//                                    <name>.json and .txt at exit; <name>: see
//                                    record/recording_name.h
//
// At exit() or the return of main, the results are written, and two lines on standard error name
// them. _exit(), a signal or kill -9 leave <name>.lspool, which `lanescope recover` and every
// reading command open.
#pragma once
#include "lanescope/record/record_abi.h"

namespace lanescope::record_cupti {

// Opens <DIR>/<name>.lspool and starts to record into it. False: not wanted here (see above),
// already running, or it failed; a line on standard error then says why. Registers the end with
// atexit(), during cuInit(): handlers run in reverse order, so ours runs before those of libraries
// loaded earlier, such as the CUDA runtime. Never throws. Slow: makes files, prepares sources.
bool start_native_recording() noexcept;

}  // namespace lanescope::record_cupti

// Takes the same settings from inside the process, as lines KEY=VALUE without the prefix
// "LANESCOPE_RECORD_". After that the environment is no longer read. Empty: no native recording
// begins. Null: nothing changes. Returns 1 if one is running, else 0. The Python package calls it,
// because its processes keep their environment clean. Any thread.
extern "C" LANESCOPE_RECORD_EXPORT int lanescope_native_settings(const char* lines);
