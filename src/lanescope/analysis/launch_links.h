// Who started what: device work -> API call -> operator, and backward operator -> forward operator.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// Defined in docs/definitions.md#launch-links. Columns have one entry a slice, kNone<SliceId> where
// there is no link.
struct LaunchLinks {
  // Device slice -> the API call of its process with its correlation id. Of several such calls the
  // one that started last before the device slice did, else the first. Where processes of one file
  // use the same ids, call_owners.h says whose a device slice is. Id 0 or no id: none. One call may
  // start many slices (graphs).
  std::vector<SliceId> launch_of;
  // API call -> the innermost operator or annotation that contains its start on its own thread.
  // Device slice -> the same of its launch; without a launch, the External id's operator if those
  // ids proved right.
  std::vector<SliceId> op_of;
  // Backward operator -> the operator that recorded its Sequence number on the thread of its
  // process that Fwd thread id means.
  std::vector<SliceId> forward_of;

  // Counts over device work (kernels, copies, memsets).
  std::uint64_t device_work_count = 0;
  std::uint64_t launched_count = 0;          // with a launch_of
  std::uint64_t external_id_used_count = 0;  // op_of by External id
  // How well External ids agree with containment: `right` of `checked` launches whose External id
  // names an operator that contains the launch. Trusted: more than 99 % right, or nothing to check
  // and not merely a copy of correlation.
  std::uint64_t external_id_checked_count = 0, external_id_right_count = 0;
  bool external_id_trusted = false;

  // The device slices that one API call started, in order of (track, start). Empty for anything
  // else.
  std::span<const SliceId> launched_by(SliceId api_call) const;

  std::vector<std::uint32_t> launched_first;  // slices + 1 entries into `launched`
  std::vector<SliceId> launched;
};

// O(n log n) time, about 20 bytes a slice while it lives. Overlapping slices on one track are fine.
// Any thread.
LaunchLinks compute_launch_links(const Trace& trace);

}  // namespace lanescope::analysis
