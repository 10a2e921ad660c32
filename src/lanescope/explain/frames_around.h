// The Python frames and ranges around a slice, found without a look at each slice before it.
//
// Idea: keep the latest end of the frames and ranges in each block of slices. A block in which all end before the slice does
// holds none that is around it.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/model/trace.h"

namespace lanescope::explain {

class FramesAround {
 public:
  // Borrows the trace. One pass over its slices, if it has frames or ranges.
  explicit FramesAround(const Trace& trace);
  const Trace& trace() const { return trace_; }

  // visit(frame) for the Python frames and the ranges of programs and libraries on the slice's thread that come before it and end
  // no earlier, the innermost first, until it returns true. O(blocks + found). Any thread.
  template <typename Visit>
  void visit(SliceId slice, Visit visit) const {
    if (latest_end_ns_.empty()) return;
    const std::uint32_t first = trace_.track(slice).first_slice;
    const std::int64_t end_ns = trace_.end_ns(slice);
    for (std::uint32_t i = raw(slice); i > first;) {
      if (i % kBlock == 0 && i - first >= kBlock && latest_end_ns_[i / kBlock - 1] < end_ns) {
        i -= kBlock;
        continue;
      }
      const SliceId frame{--i};
      if (takes_part(frame) && trace_.end_ns(frame) >= end_ns && visit(frame)) return;
    }
  }

 private:
  static constexpr std::uint32_t kBlock = 64;  // slices
  bool takes_part(SliceId slice) const {
    const CategoryKind kind = trace_.kind(slice);
    return kind == CategoryKind::kPythonFunction || kind == CategoryKind::kUserAnnotation;
  }

  const Trace& trace_;
  std::vector<std::int64_t>
      latest_end_ns_;  // by block; empty: the trace has neither frames nor ranges
};

// Made once for these Facts.
const FramesAround& frames_around(const Facts& facts);

}  // namespace lanescope::explain
