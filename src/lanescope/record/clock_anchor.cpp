#include "lanescope/record/clock_anchor.h"

#include <time.h>

#include "lanescope/record/tick_clock.h"

namespace lanescope::record {
namespace {

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

// Reads the monotonic clock between two reads of the counter, several times, and keeps the
// narrowest reading: there the thread was not interrupted. Reads the realtime clock next to it,
// which only says when the recording was, not how long.
spool::AnchorRecord read_anchor() noexcept {
  spool::AnchorRecord best;
  for (int tries = 0; tries < 8; ++tries) {
    const std::uint64_t before = ticks();
    const std::uint64_t monotonic = clock_ns(CLOCK_MONOTONIC);
    const std::uint64_t after = ticks();
    const std::uint64_t realtime = clock_ns(CLOCK_REALTIME);
    if (tries != 0 && after - before >= best.width_ticks) continue;
    best.begin_tsc = before + (after - before) / 2;
    best.width_ticks = after - before;
    best.monotonic_ns = static_cast<std::int64_t>(monotonic);
    best.realtime_ns = realtime;
  }
  return best;
}

std::uint64_t estimate_ticks_per_second() noexcept {
  const spool::AnchorRecord first = read_anchor();
  spool::AnchorRecord last;
  do last = read_anchor();
  while (last.monotonic_ns - first.monotonic_ns < 1'000'000);
  const double seconds = static_cast<double>(last.monotonic_ns - first.monotonic_ns) * 1e-9;
  return static_cast<std::uint64_t>(static_cast<double>(last.begin_tsc - first.begin_tsc) /
                                    seconds);
}

}  // namespace lanescope::record
