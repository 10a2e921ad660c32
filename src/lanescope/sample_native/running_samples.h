// Registers and stacks of threads while they run on a core, from the kernel's sampling timer
// (perf_event_open). The thread is interrupted for some microseconds, as by any timer, and never
// stopped. docs/decisions/native_stacks.md
#pragma once
#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "lanescope/sample_native/native_unwinder.h"

namespace lanescope::sample_native {

struct RunningSample {
  std::int64_t time_ns = 0;  // CLOCK_MONOTONIC
  NativeRegisters registers;
  std::vector<std::byte> stack;  // from the stack pointer on
};

// One thread uses it. At most 256 threads have a timer.
class RunningSamples {
 public:
  static constexpr std::size_t kMostThreads = 256, kStackBytes = 16 << 10;

  // One sample for each `period_ns` of CPU time.
  explicit RunningSamples(std::int64_t period_ns) : period_ns_(period_ns) {}
  ~RunningSamples();
  RunningSamples(const RunningSamples&) = delete;
  RunningSamples& operator=(const RunningSamples&) = delete;

  // The newest sample of the thread since the last call; false: none. The first call starts its timer.
  bool take(pid_t thread, RunningSample* out);
  // Drops the samples that were not taken, then waits until a timer fires, at most `most_ns`.
  void wait(std::int64_t most_ns);
  void forget(pid_t thread);
  // The errno with which the kernel refused a timer; 0: it did not.
  int refusal() const { return refusal_; }

 private:
  struct Timer {
    int file = -1;
    void* ring = nullptr;
  };
  bool start(pid_t thread, Timer* timer);
  static void stop(const Timer& timer);
  static bool parse(std::span<const std::byte> record, RunningSample* out);

  const std::int64_t period_ns_;
  std::unordered_map<pid_t, Timer> timers_;
  std::vector<std::byte> record_;
  std::vector<pollfd> files_;
  int refusal_ = 0;
};

}  // namespace lanescope::sample_native
