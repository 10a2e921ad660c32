// Who started what: device work -> API call -> operator, and backward operator -> forward operator.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// Counts over device work (kernels, copies, memsets).
struct LaunchCounts {
  std::uint64_t device_work_count = 0;
  std::uint64_t launched_count = 0;          // with a launch_of
  std::uint64_t external_id_used_count = 0;  // op_of by External id
  // How well External ids agree with containment: for `right` of `checked` launches, the External
  // id names an operator that contains the launch. Trusted: more than 99 % right, or nothing to
  // check and not only a copy of the correlation id.
  std::uint64_t external_id_checked_count = 0, external_id_right_count = 0;
  bool external_id_trusted = false;
};

// Defined in docs/definitions/launches.md#launch-links. Columns have one entry per slice;
// kNone<SliceId>: no link.
struct LaunchLinks : LaunchCounts {
  // Device slice -> the API call of its process with its correlation id. If there are several, the
  // last one to start before the device slice, else the first. If processes in the file use the
  // same ids, call_owners.h finds the process of a device slice. Id 0 or no id: none. One call may
  // start many slices (graphs).
  std::vector<SliceId> launch_of;
  // API call -> the innermost operator or annotation that contains its start on its thread.
  // Device slice -> that of its launch; without a launch, the operator with its External id, if
  // these ids are trusted.
  std::vector<SliceId> op_of;
  // Backward operator -> the operator with its Sequence number on the thread that its Fwd
  // thread id means.
  std::vector<SliceId> forward_of;

  // The device slices that one API call started, in order of (track, start). Empty
  // for other slices.
  std::span<const SliceId> launched_by(SliceId api_call) const;

  std::vector<std::uint32_t> launched_first;  // slices + 1 entries into `launched`
  std::vector<SliceId> launched;
};

// O(n log n) time, about 20 bytes per slice. Slices on one track may overlap. The result is the same for any number of threads
// (0: usual_threads()) and for any number of slices that a thread takes at once; tests let it take few. Any thread.
// launch_owners.h costs less where device work alone matters.
LaunchLinks compute_launch_links(const Trace& trace, unsigned threads = 1,
                                 std::uint32_t slices_at_once = 1u << 16);

}  // namespace lanescope::analysis
