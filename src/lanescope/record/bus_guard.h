// Keeps a fault in a recording's file from ending the program.
//
// Problem: records are stored straight into a mapped file. When somebody cuts that file, or its
// disk fails, the next store raises SIGBUS, and the program dies for its profiler. Idea (after
// LTTng-UST's guard of its shared buffers): a handler that knows what is mapped. A fault there puts
// zeroed memory where the file was, switches recording off and lets the store go on; any other
// SIGBUS goes to the handler that was there before. Cost: one entry of a table for each mapping.
#pragma once
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lanescope::record {

// Any thread; no locks. Meant to be one object of static storage.
class BusGuard {
 public:
  static constexpr std::size_t kCapacity = 1 << 16;  // about as many mappings as a process may have

  // `recording` becomes 0 with the first fault.
  explicit constexpr BusGuard(std::atomic<std::uint32_t>* recording) : recording_(recording) {}
  BusGuard(const BusGuard&) = delete;
  BusGuard& operator=(const BusGuard&) = delete;

  // `handler` calls handle(). Once a process, and never taken back: others may have chained to it
  // since. One thread at a time.
  void install(void (*handler)(int, siginfo_t*, void*)) noexcept;
  // By the handler only; async-signal-safe.
  void handle(int signal, siginfo_t* info, void* context) noexcept;

  // A mapping to watch: whole pages, at most 2 MiB. False: the table is full.
  bool add(const void* at, std::size_t bytes) noexcept;
  // Before it is unmapped.
  void remove(const void* at) noexcept;
  // Nothing of these is mapped in a forked child.
  void forget_all() noexcept;
  // The recording's file is not what it should be: as after a fault.
  void report() noexcept;
  // Grows with each fault in a watched mapping, and with each report().
  std::uint32_t faults() const noexcept { return faults_.load(std::memory_order_acquire); }

 private:
  bool replace(std::uintptr_t address) noexcept;
  void pass_on(int signal, siginfo_t* info, void* context) noexcept;

  std::atomic<std::uint32_t>* const recording_;
  // Release before memory is replaced; acquire by who has read from such memory and asks whether
  // that was the file's.
  std::atomic<std::uint32_t> faults_{0};
  std::atomic<std::int32_t> pid_{0};  // relaxed: who mapped what is in the table
  // Address plus pages; 0: empty. Relaxed: a mapping's owner adds it before its first access.
  std::array<std::atomic<std::uintptr_t>, kCapacity> ranges_{};
  std::atomic<std::size_t> end_{0};  // entries from here on were never used
  bool installed_ = false;
  struct sigaction before_ {};
  std::atomic<bool> before_is_default_{false};  // a handler with SA_RESETHAND has run
};

// Lets this thread take SIGBUS: the kernel kills a program for a fault in a thread that blocks it.
void unblock_bus_fault() noexcept;

}  // namespace lanescope::record
