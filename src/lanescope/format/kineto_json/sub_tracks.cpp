#include "lanescope/format/kineto_json/sub_tracks.h"

#include <algorithm>
#include <set>

#include "lanescope/model/nested_rows.h"

namespace lanescope::format {
namespace {

// Numbers for new threads of a process: the first ones after its largest, as far as 32 bits go,
// because readers keep no more of a tid.
class FreeTids {
 public:
  FreeTids(const Trace& trace, ProcessId process) {
    for (const Track& track : trace.tracks())
      if (track.process == process && !track.tid.is_text) taken_.insert(track.tid.number);
    const auto last = taken_.upper_bound(kLargest - kMostRows);
    next_ = last == taken_.begin() ? 1 : std::max<std::int64_t>(*std::prev(last) + 1, 1);
  }
  std::int64_t take() {
    while (!taken_.insert(next_).second) ++next_;
    return next_++;
  }

 private:
  static constexpr std::int64_t kLargest = INT32_MAX, kMostRows = 1 << 20;
  std::set<std::int64_t> taken_;
  std::int64_t next_ = 1;
};

}  // namespace

SubTracks::SubTracks(const Trace& trace) {
  for (std::uint32_t process = 0; process < trace.processes().size(); ++process) {
    std::optional<FreeTids> tids;
    for (std::uint32_t i = 0; i < trace.tracks().size(); ++i) {
      const Track& track = trace.tracks()[i];
      if (raw(track.process) != process) continue;
      if (track.kind != TrackKind::kThread && track.kind != TrackKind::kStream) continue;
      const NestedRows nested = find_nested_rows(trace, track);
      for (std::size_t row = 1; row < nested.row_count(); ++row) {
        if (!tids) tids.emplace(trace, track.process);
        for (const std::uint32_t slice : nested.row(row))
          moved_.emplace_back(slice, static_cast<std::uint32_t>(rows_.size()));
        rows_.push_back({TrackId{i}, static_cast<std::uint32_t>(row), tids->take()});
      }
    }
  }
  std::sort(moved_.begin(), moved_.end());
}

std::optional<std::uint32_t> SubTracks::row_of(std::uint32_t slice) const {
  const auto found =
      std::lower_bound(moved_.begin(), moved_.end(), std::pair(slice, std::uint32_t{0}));
  if (found == moved_.end() || found->first != slice) return std::nullopt;
  return found->second;
}

std::optional<std::uint32_t> SubTracks::row_at(const Trace& trace, TrackId track_id,
                                               std::int64_t ns) const {
  if (moved_.empty()) return std::nullopt;
  const Track& track = trace.track(track_id);
  const auto* const first = trace.slices().start_ns.data() + track.first_slice;
  const auto* const last = first + track.slice_count;
  const auto* const after = std::upper_bound(first, last, ns);
  if (after == first || *std::prev(after) != ns) return std::nullopt;
  return row_of(track.first_slice + static_cast<std::uint32_t>(after - first) - 1);
}

}  // namespace lanescope::format
