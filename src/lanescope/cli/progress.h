// A progress line on the terminal during long work: how far, how fast. Removed at the end.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "lanescope/cli/output.h"

namespace lanescope::cli {

enum class ProgressUnit : std::uint8_t { kBytes, kEvents };

// Silent in the first second, and if standard error is not a terminal. At most ten updates a
// second. One thread.
class ProgressLine {
 public:
  // `what` reads like "reading trace.json".
  ProgressLine(const Output& output, std::string what, ProgressUnit unit = ProgressUnit::kBytes);
  ~ProgressLine();  // clears the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // total 0: unknown; shows only the amount and the speed.
  void update(std::uint64_t done, std::uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  ProgressUnit unit_;
  bool shown_ = false;
  bool enabled_;
  Clock::time_point start_;
  Clock::time_point next_;
};

// The same for work that cannot say how far it is: "finding the lanes of 10.1 M events   3 s". Shown as long as the object
// lives, by a thread of its own; silent in the first second, and if standard error is no terminal.
class WaitLine {
 public:
  WaitLine(const Output& output, const std::string& what);
  ~WaitLine();  // clears the line
  WaitLine(const WaitLine&) = delete;
  WaitLine& operator=(const WaitLine&) = delete;

 private:
  void run(const std::string& what);
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;  // under mutex_
  std::thread thread_;
};

// "reading x 45 % 123 of 270 MB 412 MB/s", cut to `columns`. MB are 10^6 bytes; events
// count in millions.
std::string progress_text(const std::string& what, ProgressUnit unit, std::uint64_t done,
                          std::uint64_t total, double seconds, std::size_t columns);

}  // namespace lanescope::cli
