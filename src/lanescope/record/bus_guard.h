// Keeps a fault in a recording's file from ending the program.
//
// Problem: records are stored straight into a mapped file. When somebody cuts that file, or its
// disk fails, the next store raises SIGBUS, and the profiler kills the program. Idea (from the
// guard of LTTng-UST's daemons): a handler that knows the mappings. On a fault there it maps zeroed
// memory over the file, switches recording off and lets the store go on. Any other SIGBUS goes to
// the handler that was installed before. Cost: one table entry for each mapping.
#pragma once
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lanescope::record {

// Any thread; no locks. Make one static object.
class BusGuard {
 public:
  static constexpr std::size_t kCapacity = 1 << 16;  // about as many mappings as a process may have

  // `recording` becomes 0 with the first fault.
  explicit constexpr BusGuard(std::atomic<std::uint32_t>* recording) : recording_(recording) {}
  BusGuard(const BusGuard&) = delete;
  BusGuard& operator=(const BusGuard&) = delete;

  // `handler` calls handle(). Installed once per process and never removed, because later handlers
  // may call it. Call it from one thread at a time.
  void install(void (*handler)(int, siginfo_t*, void*)) noexcept;
  // Only for the handler; async-signal-safe.
  void handle(int signal, siginfo_t* info, void* context) noexcept;

  // Watches a mapping: whole pages, at most 2 MiB. False: the table is full.
  bool add(const void* at, std::size_t bytes) noexcept;
  // Call before unmapping.
  void remove(const void* at) noexcept;
  // For a forked child, where none of them is mapped.
  void forget_all() noexcept;
  // Acts as after a fault: the recording's file is damaged.
  void report() noexcept;
  // Grows with each fault in a watched mapping, and with each report().
  std::uint32_t faults() const noexcept { return faults_.load(std::memory_order_acquire); }

 private:
  bool replace(std::uintptr_t address) noexcept;
  void pass_on(int signal, siginfo_t* info, void* context) noexcept;

  std::atomic<std::uint32_t>* const recording_;
  // Release before memory is replaced. Acquire after reading such memory, to ask whether it
  // was the file's.
  std::atomic<std::uint32_t> faults_{0};
  std::atomic<std::int32_t> pid_{0};  // relaxed: the process whose mappings are in the table
  // Address plus page count; 0: empty. Relaxed: the owner adds a mapping before its first access.
  std::array<std::atomic<std::uintptr_t>, kCapacity> ranges_{};
  std::atomic<std::size_t> end_{0};  // entries from here on were never used
  bool installed_ = false;
  struct sigaction before_ {};
  std::atomic<bool> before_is_default_{false};  // a handler with SA_RESETHAND has run
};

// Lets this thread take SIGBUS: the kernel kills a program for a fault in a thread that blocks it.
void unblock_bus_fault() noexcept;

}  // namespace lanescope::record
