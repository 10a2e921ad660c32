// The windows of a recording that a reader was asked for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lanescope/format/spool/spool_index.h"

namespace lanescope::format {

class SpoolWindows {
 public:
  struct Window {
    std::uint64_t start, stop;  // ticks, both inside
    std::uint64_t opened;       // ticks; before `start` when a ring keeps only the end
  };

  SpoolWindows() = default;
  // Those of one session and one cycle, or all. Windows of two sessions may overlap: their union is
  // what was recorded. One that was never closed lasts to `last_tick`, and without any mark (lost
  // with its chunk) everything counts. Of a ring only the last seconds before its newest window's
  // end count, and of these only what came after the last gap; without a clock all of it.
  SpoolWindows(const SpoolIndex& index, std::optional<std::uint32_t> session,
               std::optional<std::uint32_t> cycle, std::uint64_t last_tick, const TickMap* clock);

  std::span<const Window> all() const { return windows_; }  // in order of time, apart
  const Window* at(std::uint64_t tick) const;               // nullptr: outside of all. One thread
  // The window of a range that began in it before what a ring kept of it, and reaches into that.
  const Window* reached(std::uint64_t begin, std::uint64_t end) const;
  bool has_ring() const { return has_ring_; }
  std::uint32_t options() const { return options_; }  // recorded with, of all windows

 private:
  std::vector<Window> windows_;
  std::uint32_t options_ = 0;
  bool has_ring_ = false;
  mutable std::size_t last_ = 0;
};

}  // namespace lanescope::format
