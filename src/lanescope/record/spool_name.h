// The path of a recording's file, and whether the file goes with its last user.
#pragma once
#include <unistd.h>

#include <string>
#include <utility>

namespace lanescope::record {

// A spool's path, shared by all who may still read it. The last one removes a temporary file, if it
// is in the process that made it.
struct SpoolName {
  std::string path;
  bool temporary = false;
  int pid = 0;
  SpoolName(std::string where, bool is_temporary)
      : path(std::move(where)), temporary(is_temporary), pid(getpid()) {}
  ~SpoolName() {
    if (temporary && pid == getpid()) unlink(path.c_str());
  }
  SpoolName(const SpoolName&) = delete;
  SpoolName& operator=(const SpoolName&) = delete;
};

}  // namespace lanescope::record
