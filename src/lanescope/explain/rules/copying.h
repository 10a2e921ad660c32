// The time that copies between the CPU's memory and the GPU cost a step.
#pragma once
#include <cstdint>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// Copies in the steady steps on the main device.
struct Copying {
  std::uint64_t copies = 0;
  std::int64_t bytes = 0;     // of those whose size is known
  bool all_sized = true;      // it is known of all
  std::int64_t alone_ns = 0;  // only such copies ran
  // The GPU waited for the CPU, and the CPU was in an operator that makes such a copy (aten::to,
  // aten::copy_), or in the copy's call.
  std::int64_t waiting_ns = 0;
  SliceId longest = kNone<SliceId>;
  bool all_pinned = true;  // no copy's name says that its memory is pageable
  std::int64_t time_ns() const { return alone_ns + waiting_ns; }
};

// Needs a main device. Made once for these Facts: O(n log n).
const Copying& copying_of(const Facts& facts);

// Copying::waiting_ns where copies bound the step, as its headline counts it; else 0.
std::int64_t waiting_in_copies_ns(const Facts& facts);

}  // namespace lanescope::explain::rules
