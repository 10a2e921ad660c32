// Aligns two sequences of calls. One of them may lack calls, or have others.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lanescope::ranks {

// Pairs of places (in `expected`, in `own`), rising in both.
struct Alignment {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;     // equal
  std::vector<std::pair<std::size_t, std::size_t>> replaced;  // different, between equal neighbours
  bool gave_up = false;  // too different: only the equal begin and end are in `pairs`
};

inline constexpr std::size_t kMostAlignCells = std::size_t{1} << 22;

// Equally long sequences with at most a quarter of the calls different: place by place. Others: by
// the longest common subsequence, and only by pairs that every such subsequence has. If calls are
// missing among equal ones, it is unknown which. O(n) if equal, else O(n m) up to kMostAlignCells.
Alignment align_calls(std::span<const std::uint32_t> expected, std::span<const std::uint32_t> own);

}  // namespace lanescope::ranks
