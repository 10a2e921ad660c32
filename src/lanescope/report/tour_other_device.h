// What the tour shows of a device that is no GPU (analysis/vendor_device.h).
#pragma once
#include "lanescope/analysis/steps.h"
#include "lanescope/analysis/vendor_device.h"
#include "lanescope/model/trace.h"

namespace lanescope::report {

// The longest computation inside a window; ties: the first. kNone: there is none.
SliceId longest_of_other_device(const Trace& trace, const analysis::VendorDevice& device,
                                const analysis::Window& window);
// The longest time inside a window in which no stream computes, communicates or copies; of length
// zero: there is none. O(n log n).
analysis::Window longest_wait_of_other_device(const Trace& trace, const analysis::Window& window);

}  // namespace lanescope::report
