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
  // The windows of one session and one cycle, or all; none of cycles before `first_cycle`. Windows
  // of two sessions may overlap; together they are what was recorded. A window that was never
  // closed lasts to `last_tick`; without any mark (lost with its chunk) everything counts. In a
  // ring, only the last seconds before the end of its newest window count, and of these only the
  // time after the last gap; without a clock, all of it. Of a cycle that has parts with the GPU
  // (LANESCOPE_RECORD_GPU_PART), only the longest one counts; ties: the first.
  SpoolWindows(const SpoolIndex& index, std::optional<std::uint32_t> session,
               std::optional<std::uint32_t> cycle, std::uint64_t last_tick, const TickMap* clock,
               std::uint32_t first_cycle = 0);
  // Everything that was recorded: each window, whole.
  static SpoolWindows whole(const SpoolIndex& index, std::uint64_t last_tick);

  std::span<const Window> all() const { return windows_; }  // in order of time, disjoint
  const Window* at(std::uint64_t tick) const;               // nullptr: outside of all windows.
                                                            // One thread
  // The window of a range that began in it, before the kept part of a ring, and ends in that part.
  const Window* reached(std::uint64_t begin, std::uint64_t end) const;
  // The first window that starts in [from, to], both included.
  const Window* first_start(std::uint64_t from, std::uint64_t to) const;
  bool has_ring() const { return has_ring_; }
  std::uint32_t options() const { return options_; }  // of all windows together

 private:
  void set(std::vector<Window> found);  // sorts, and unites what overlaps

  std::vector<Window> windows_;
  std::uint32_t options_ = 0;
  bool has_ring_ = false;
  mutable std::size_t last_ = 0;
};

}  // namespace lanescope::format
