// Time that several suggestions count, so that nobody adds it up twice.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lanescope/explain/do_first.h"

namespace lanescope::explain {

// Of suggestions about the CPU's time whose gains do not add up. docs/definitions/explain.md#do-first
struct SharedTime {
  std::vector<std::size_t>
      numbers;               // their places in the list, from 1; of a part: the whole comes first
  bool is_part = false;      // nearly all time of the second lies within that of the first
  std::int64_t most_ns = 0;  // else: what they gain together at most
};
// Nothing: they may add up. Cost: a replay if several gains are predicted.
std::optional<SharedTime> shared_time(const Explanation& explanation,
                                      const std::vector<Suggestion>& first);

std::int64_t length_of_windows(std::span<const analysis::Window> windows);
// Windows that are disjoint and in order. O(windows).
std::int64_t overlap_of_windows(std::span<const analysis::Window> a,
                                std::span<const analysis::Window> b);

}  // namespace lanescope::explain
