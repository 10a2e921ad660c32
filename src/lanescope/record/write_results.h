// What becomes of a finished recording when its program ends: a process of its own turns a small
// one into a trace and a table; a large one stays as it is.
//
// Problem: a conversion takes time and memory, and whoever pays for it is a training job that was
// done. Idea: nothing of it happens in the program. The lanescope command does it, with the lowest
// priority, a memory limit of its own, and as the first to go when memory is short; the program
// waits only for what takes a moment.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/record/record_abi.h"

namespace lanescope::record {

// Larger recordings stay .lspool files, which every lanescope command opens: their JSON would be
// four times as large and more.
inline constexpr std::uint64_t kMostBytesForJson = 16u << 20;
// How long the program waits for conversions that nobody forced, for all of them together. They go
// on by themselves after that.
inline constexpr int kMostSecondsToWait = 10;

struct ResultOptions {
  std::string command;       // the lanescope command; empty: there is none
  std::string recording;     // .lspool, finished
  std::string trace;         // .json or .json.gz; the table of a small one is next to it, .txt
  bool always_json = false;  // however large the recording is; then waits for as long as it takes
  bool keep_recording = false;  // else it goes when trace and table are whole
};

// Of a recording and its dumps, one process after the other. Returns what the user should know, one
// line each. Nothing throws but std::bad_alloc; a recording stays when anything fails. Any thread.
LANESCOPE_RECORD_EXPORT std::vector<std::string> write_results(
    const std::vector<ResultOptions>& recordings);

}  // namespace lanescope::record
