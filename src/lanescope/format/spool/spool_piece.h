// A stretch of a recording that becomes rows at once.
#pragma once
#include <cstdint>

namespace lanescope::format {

// Half-open, in ticks. What begins in it belongs to it.
struct SpoolPiece {
  static constexpr std::uint64_t kNoEnd = ~std::uint64_t{0};
  std::uint64_t from = 0, to = kNoEnd;

  bool is_last() const { return to == kNoEnd; }
  bool is_whole() const { return from == 0 && is_last(); }
  bool holds(std::uint64_t tick) const { return from <= tick && (tick < to || is_last()); }
};

}  // namespace lanescope::format
