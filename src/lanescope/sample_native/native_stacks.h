// The native stacks of all threads of a running process, taken without stopping it.
//
// Problem: only a stopped thread shows its registers, and stopping a training job harms it. Idea: a
// thread that waits in the kernel does not move, and /proc/PID/task/TID/syscall has its stack pointer
// and instruction. So we copy its stack, and keep the copy if the thread still waits in the same call
// afterwards. For a thread that runs, the kernel's sampling timer copies the stack (running_samples.h).
// We find the callers in the copies. docs/decisions/native_stacks.md
//
// Cost of one sample: two reads of /proc for each thread; one copy and one walk for each thread that has
// moved since the last sample.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/sample/process_memory.h"
#include "lanescope/sample_native/native_modules.h"
#include "lanescope/sample_native/native_unwinder.h"
#include "lanescope/sample_native/running_samples.h"

namespace lanescope::sample_native {

struct NativeStack {
  std::uint64_t thread = 0;           // OS thread id, as the process itself sees it
  std::string name;                   // as the kernel has it ("pt_autograd_0")
  bool waits = false;                 // else it runs
  std::int64_t time_ns = 0;           // CLOCK_MONOTONIC; if it runs: when its timer fired
  std::vector<std::uint32_t> frames;  // NativeStacks::function(), innermost first; empty: not known
  bool is_whole = false;              // the outermost frame is the thread's first function
};

class NativeStacks {
 public:
  static constexpr std::size_t kMostThreads = 1024, kMostStackBytes = 32 << 10;

  struct Counts {
    std::uint64_t waiting = 0, running = 0;  // stacks taken
    std::uint64_t moved = 0;                 // stacks not taken: the thread woke up meanwhile
    std::uint64_t unseen = 0;                // stacks not taken: the thread ran, and no timer fired
  };

  // `period_ns`: mean time between samples.
  NativeStacks(pid_t pid, sample::ProcessMemory& memory, std::int64_t period_ns);
  ~NativeStacks();
  NativeStacks(const NativeStacks&) = delete;
  NativeStacks& operator=(const NativeStacks&) = delete;

  // Call it first. Reads the files' symbols and starts the timers, which takes up to a second.
  // kUnavailable: no such process, no permission, or not x86-64; the message says what to do.
  Result<void> begin();
  // Waits until the timer sees one of the threads run, at most that long, so that its native and
  // its Python stack are read at the same moment. If none runs, waits the whole time.
  void wait_for_running(std::int64_t most_ns) { running_.wait(most_ns); }
  // Call them before and after the Python stacks are read. A native stack with `waits` is then of the same
  // moment as the Python stack. The result is valid until the next call.
  void before_python();
  const std::vector<NativeStack>& after_python();
  const NativeFunction& function(std::uint32_t number) const { return modules_.function(number); }
  const Counts& counts() const { return counts_; }
  int timer_refusal() const { return running_.refusal(); }

 private:
  struct Thread {
    std::uint64_t id = 0;
    std::string name;
    int file = -1;  // /proc/PID/task/TID/syscall
    std::string line, line_before;
    std::vector<std::byte> stack;
    std::uint64_t stack_at = 0;
    std::string walked_line;  // `result` has the callers of this line
    NativeStack result;
    bool seen = false;
  };
  void find_threads();
  bool read_line(Thread& thread, std::string* line) const;
  void copy_stack(Thread& thread);
  bool finish_waiting(Thread& thread);
  void walk(Thread& thread, const NativeRegisters& registers, std::uint64_t stack_at,
            std::span<const std::byte> stack);

  const pid_t pid_;
  sample::ProcessMemory& memory_;
  NativeModules modules_;
  NativeUnwinder unwinder_;
  RunningSamples running_;
  RunningSample sample_;
  std::map<pid_t, Thread> threads_;
  std::int64_t find_at_ns_ = 0;
  std::vector<NativeStack> found_;
  Counts counts_;
};

// "230 0x0 ... 0x7ffe8b867f68 0x7f65d1fa2503": stack pointer and instruction of a thread that waits in a
// system call. Nothing: it runs, or waits elsewhere.
struct WaitingPlace {
  std::uint64_t stack = 0, instruction = 0;
};
std::optional<WaitingPlace> parse_waiting(const std::string& line);

}  // namespace lanescope::sample_native
