#include "lanescope/format/perfetto/flow_places.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

#include "lanescope/format/perfetto/fields.h"

namespace lanescope::format {
namespace {

constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
constexpr std::uint32_t kMostSlicesBack = 64;  // on the way to a slice that encloses a time

// The last slice of the track that begins at that time, else the innermost that encloses it.
std::uint32_t slice_at(const Trace& trace, TrackId track_id, std::int64_t ns) {
  const Track& track = trace.track(track_id);
  const auto* const first = trace.slices().start_ns.data() + track.first_slice;
  const auto before =
      static_cast<std::uint32_t>(std::upper_bound(first, first + track.slice_count, ns) - first);
  for (std::uint32_t back = 1; back <= std::min(before, kMostSlicesBack); ++back) {
    const SliceId slice{track.first_slice + before - back};
    if (trace.start_ns(slice) == ns || trace.end_ns(slice) > ns) return raw(slice);
  }
  return kNowhere;
}

bool begins_at(const Trace& trace, std::uint32_t slice, std::int64_t ns) {
  return slice != kNowhere && trace.slices().start_ns[slice] == ns;
}

}  // namespace

FlowPlaces::FlowPlaces(const Trace& trace) {
  std::unordered_set<std::uint64_t> taken;
  for (std::uint32_t i = 0; i < trace.flows().size(); ++i) {
    const Flow& flow = trace.flows()[i];
    const std::uint32_t kind = kind_of(flow);
    const std::uint32_t from = slice_at(trace, flow.from_track, flow.from_ns);
    const std::uint32_t to = slice_at(trace, flow.to_track, flow.to_ns);
    std::uint64_t wire_id = pftrace::kOwnFlowsFrom + i;
    const bool has_small_id =
        !flow.id_is_text && flow.id_value >= 0 &&
        static_cast<std::uint64_t>(flow.id_value) < pftrace::kFlowKindFactor && kind < 1U << 22U;
    if (has_small_id && begins_at(trace, from, flow.from_ns) && begins_at(trace, to, flow.to_ns)) {
      const std::uint64_t own = (kind + std::uint64_t{1}) * pftrace::kFlowKindFactor +
                                static_cast<std::uint64_t>(flow.id_value);
      if (taken.insert(own).second) wire_id = own;
    }
    if (wire_id >= pftrace::kOwnFlowsFrom) spelled_.push_back({i, kind, wire_id});
    if (from == kNowhere || to == kNowhere) continue;
    ends_.push_back({from, false, wire_id});
    ends_.push_back({to, true, wire_id});
  }
  std::sort(ends_.begin(), ends_.end(), [](const FlowEnd& a, const FlowEnd& b) {
    return std::tuple(a.slice, a.is_end, a.wire_id) < std::tuple(b.slice, b.is_end, b.wire_id);
  });
}

std::span<const FlowEnd> FlowPlaces::ends_of(std::uint32_t slice) const {
  const auto [first, last] =
      std::equal_range(ends_.begin(), ends_.end(), FlowEnd{slice},
                       [](const FlowEnd& a, const FlowEnd& b) { return a.slice < b.slice; });
  return {first, last};
}

std::uint32_t FlowPlaces::kind_of(const Flow& flow) {
  const FlowKind kind{flow.name, flow.category, flow.binds_enclosing};
  // A trace has a handful; the last ones are the likely ones.
  for (std::size_t i = kinds_.size(); i-- > 0 && kinds_.size() - i <= 64;)
    if (kinds_[i] == kind) return static_cast<std::uint32_t>(i);
  kinds_.push_back(kind);
  return static_cast<std::uint32_t>(kinds_.size() - 1);
}

}  // namespace lanescope::format
