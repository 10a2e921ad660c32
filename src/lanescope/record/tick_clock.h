// The clock of the hot path: a counter that one instruction reads, the same on all cores, turned
// into time by the reader.
#pragma once
#include <time.h>

#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "lanescope/codec/spool_layout.h"

namespace lanescope::record {

#if defined(__x86_64__)
inline constexpr spool::ClockKind kTickClock = spool::ClockKind::kTsc;
inline std::uint64_t ticks() noexcept { return __rdtsc(); }
#elif defined(__aarch64__)
inline constexpr spool::ClockKind kTickClock = spool::ClockKind::kCntvct;
inline std::uint64_t ticks() noexcept {
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
}
#else
inline constexpr spool::ClockKind kTickClock = spool::ClockKind::kMonotonicNs;
inline std::uint64_t ticks() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}
#endif

}  // namespace lanescope::record
