// The path of a recording's file, and whether the file goes with its last user.
#pragma once
#include <unistd.h>

#include <string>
#include <utility>

#include "lanescope/codec/counter_file.h"

namespace lanescope::record {

// Removes a recording, and the hardware counters next to it if there are any.
inline void remove_recording(const std::string& path) {
  unlink(path.c_str());
  unlink((path + std::string(counters::kEnding)).c_str());
}

// A spool's path, shared by all who may still read it. The last one removes a temporary file, if it
// is in the process that made it.
struct SpoolName {
  std::string path;
  bool temporary = false;
  int pid = 0;
  SpoolName(std::string where, bool is_temporary)
      : path(std::move(where)), temporary(is_temporary), pid(getpid()) {}
  ~SpoolName() {
    if (temporary && pid == getpid()) remove_recording(path);
  }
  SpoolName(const SpoolName&) = delete;
  SpoolName& operator=(const SpoolName&) = delete;
};

}  // namespace lanescope::record
