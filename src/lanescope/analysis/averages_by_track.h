// The rows of compute_key_averages() by name alone, a track at a time. Private to key_averages.cpp.
#pragma once
#include <cstdint>
#include <optional>

#include "lanescope/analysis/key_averages.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// kLanescope, without grouping by shape, stack or overload, of a trace without memory records and
// FLOPs. nullopt: the trace is one that the list of events handles better. The same for any number
// of threads (0: usual_threads()) and of slices that a thread takes at once. About 20 bytes per slice.
std::optional<KeyAverages> averages_by_track(const Trace& trace, unsigned threads,
                                             std::uint32_t block_slices = 1u << 16);

}  // namespace lanescope::analysis
