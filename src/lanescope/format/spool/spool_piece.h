// A part of a recording that is turned into rows at once.
#pragma once
#include <cstdint>

namespace lanescope::format {

// Half-open, in ticks. An event belongs to the piece in which it begins.
struct SpoolPiece {
  static constexpr std::uint64_t kNoEnd = ~std::uint64_t{0};
  std::uint64_t from = 0, to = kNoEnd;

  bool is_last() const { return to == kNoEnd; }
  bool is_whole() const { return from == 0 && is_last(); }
  bool holds(std::uint64_t tick) const { return from <= tick && (tick < to || is_last()); }
};

}  // namespace lanescope::format
