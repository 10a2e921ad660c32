// What the page shows of a selected slice: the way from the program to the GPU, its arrows, and how
// it compares with others of its name.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/analysis/launch_shape.h"
#include "lanescope/view/lanes.h"

namespace lanescope::view {

struct ChainLink {
  enum class Role : std::uint8_t {
    kStep,
    kAnnotation,
    kModule,
    kOperator,
    kLaunch,
    kKernel,
    kOther
  };
  Role role = Role::kOther;
  SliceId slice{};
};
const char* chain_role_name(ChainLink::Role role);  // "step", "annotation", ...

// From a launch call to what it started, or from a forward operator to its backward one.
struct SliceArrow {
  SliceId from{}, to{};
};

// All slices of one name. The median is a lower median.
struct SameName {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0, median_ns = 0, shortest_ns = 0, longest_ns = 0;
  SliceId previous = kNone<SliceId>, next = kNone<SliceId>;  // on the same track
};

struct SliceDetails {
  SliceId slice{};
  std::optional<LanePlace> place;
  std::optional<std::int64_t> self_ns;  // as analysis::SliceNesting
  // What encloses it, outermost first, and itself; of GPU work its launch and what encloses that.
  std::vector<ChainLink> chain;
  // Itself, its parent and so on; of GPU work its launch's operator, else its launch, and what encloses
  // that. Empty: not known.
  std::vector<SliceId> code;
  std::optional<std::int64_t> queue_ns;  // GPU work: from the end of the launch call to its start
  // Work that it, or a call inside it, started: the first kMostListedArrows, and how many.
  std::vector<SliceId> launched;
  std::uint64_t launched_count = 0;
  std::vector<SliceArrow> arrows;
  SliceId forward = kNone<SliceId>;  // a backward operator: the forward one
  SameName same;
  SliceId previous = kNone<SliceId>, next = kNone<SliceId>;  // neighbours in its row
  std::optional<analysis::LaunchShape> shape;                // kernels
};
inline constexpr std::size_t kMostListedArrows = 200;

// `slice` is a row of the trace. `known`: facts of the trace; nullptr: they are not gathered yet. All
// is then joined for this slice alone (analysis/slice_joins.h), and only `forward` is left out. O(slices):
// one pass over the names, and without facts one over the calls; if the file has the calls of several
// processes, O(n log n). Any thread.
SliceDetails describe_slice(const Lanes& lanes, SliceId slice, const explain::Facts* known);

}  // namespace lanescope::view
