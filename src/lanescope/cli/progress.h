// One line on the terminal while something long runs: how far, how fast; gone when it is done.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "lanescope/cli/output.h"

namespace lanescope::cli {

// Silent for the first second and when standard error is not a terminal. At most ten updates a
// second. One thread.
class ProgressLine {
 public:
  // `what` reads like "reading trace.json".
  ProgressLine(const Output& output, std::string what);
  ~ProgressLine();  // clears the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // total_bytes 0: unknown, then only the amount and the speed are shown.
  void update(std::uint64_t done_bytes, std::uint64_t total_bytes);

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  bool shown_ = false;
  bool enabled_;
  Clock::time_point start_;
  Clock::time_point next_;
};

// "reading x   45 %   123 of 270 MB   412 MB/s", cut to `columns`. MB are 10^6 bytes.
std::string progress_text(const std::string& what, std::uint64_t done_bytes,
                          std::uint64_t total_bytes, double seconds, std::size_t columns);

}  // namespace lanescope::cli
