// Where the arrows of a trace begin and end: Perfetto binds each end to a slice, a Trace to a place
// on a track.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lanescope/model/trace.h"

namespace lanescope::format {

// One end of an arrow, on the slice that begins there or, failing that, encloses it.
struct FlowEnd {
  std::uint32_t slice = 0;
  bool is_end = false;  // false: the arrow starts here
  std::uint64_t wire_id = 0;
};

// What equal arrows share.
struct FlowKind {
  StringId name = kNone<StringId>;
  CategoryId category{};
  bool binds_enclosing = false;
  bool operator==(const FlowKind&) const = default;
};

// An arrow that must be written in full, because its slices are not enough: its id repeats or is a
// text, or one of its ends is not where a slice begins.
struct SpelledFlow {
  std::uint32_t flow = 0;  // of Trace::flows()
  std::uint32_t kind = 0;
  std::uint64_t wire_id = 0;
};

class FlowPlaces {
 public:
  // O(flows log slices). Memory: 16 bytes an end.
  explicit FlowPlaces(const Trace& trace);
  std::span<const FlowEnd> ends_of(std::uint32_t slice) const;
  std::span<const FlowKind> kinds() const { return kinds_; }
  std::span<const SpelledFlow> spelled() const { return spelled_; }

 private:
  std::uint32_t kind_of(const Flow& flow);

  std::vector<FlowEnd> ends_;  // in order of the slice
  std::vector<FlowKind> kinds_;
  std::vector<SpelledFlow> spelled_;
};

}  // namespace lanescope::format
