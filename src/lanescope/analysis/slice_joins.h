// The joins of one slice, straight from the trace: what encloses it, and who launched what. The results equal those of
// compute_slice_nesting() and compute_launch_links(). Those make tables of the whole trace, which takes seconds for ten million
// slices: too long for a click on one slice.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lanescope/model/trace.h"

namespace lanescope::analysis {

struct EnclosingSlices {
  std::vector<SliceId> outward;  // the slice itself, its parent, ...; empty: it is not nested
  std::int64_t self_ns = 0;      // as SliceNesting::self_ns; 0 where `outward` is empty
};
// `from`: a slice of the same track, not after `slice`. When it starts, all earlier slices of the track that nest must have
// ended; the track's first slice always fits. O(slices from there to the end of `slice`).
EnclosingSlices enclosing_slices(const Trace& trace, SliceId slice, SliceId from);

// As LaunchLinks::op_of of an API call. `from` as above.
SliceId operator_around_call(const Trace& trace, SliceId call, SliceId from);

// As LaunchLinks::launch_of of device work; kNone<SliceId>: it has none. Nothing: calls of several
// processes are in the file, and only compute_launch_links() can tell whose work it is. O(slices).
std::optional<SliceId> find_launch(const Trace& trace, SliceId work);

// The same of each of `works`, in their order. O(slices + works * log(works)).
std::optional<std::vector<SliceId>> find_launches(const Trace& trace,
                                                  std::span<const SliceId> works);

// As LaunchLinks::launched_by of each of these slices: (call, work), in order of (call, work).
// Nothing: as above. O(slices * log(calls)).
using Launched = std::vector<std::pair<SliceId, SliceId>>;
std::optional<Launched> find_launched(const Trace& trace, std::span<const SliceId> slices);

}  // namespace lanescope::analysis
