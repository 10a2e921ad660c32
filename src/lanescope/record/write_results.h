// What happens to a finished recording when its program ends: another process turns a small one
// into a trace and a table; a large one stays as it is.
//
// Problem: a conversion takes time and memory, and a finished training job would pay for them. Idea:
// do none of it in the program. The lanescope command does it, with the lowest priority, with a memory
// limit, and as the first to be killed when memory is short. The program waits only a moment.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/record/record_abi.h"

namespace lanescope::record {

// Larger recordings stay .lspool files, which every lanescope command opens: their JSON would be
// four times as large and more.
inline constexpr std::uint64_t kMostBytesForJson = 16u << 20;
// How long the program waits for all conversions that `always_json` does not force. After that they
// go on without it.
inline constexpr int kMostSecondsToWait = 10;

struct ResultOptions {
  std::string command;       // the lanescope command; empty: there is none
  std::string recording;     // .lspool, finished
  std::string trace;         // .json or .json.gz; the table of a small one is next to it, .txt
  bool always_json = false;  // however large the recording is; then waits for as long as it takes
  bool keep_recording = false;  // else it goes when trace and table are whole
};

// Converts a recording and its dumps, one process after the other. Returns lines for the user.
// Throws only std::bad_alloc; when anything fails, the recording stays. Any thread.
LANESCOPE_RECORD_EXPORT std::vector<std::string> write_results(
    const std::vector<ResultOptions>& recordings);

}  // namespace lanescope::record
