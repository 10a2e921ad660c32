// Calls a function on each column of slices, one after the other.
#pragma once
#include "lanescope/model/trace.h"

namespace lanescope {

// Calls `with` on each std::vector of `slices`.
template <typename With>
void each_column(SliceColumns& slices, With with) {
  with(slices.start_ns);
  with(slices.dur_ns);
  with(slices.name);
  with(slices.track);
  with(slices.category);
  with(slices.args);
  with(slices.event_index);
}

}  // namespace lanescope
