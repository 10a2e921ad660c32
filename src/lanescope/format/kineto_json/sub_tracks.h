// Further threads for slices that overlap others of their track without nesting. Some programs drop
// such slices; Perfetto's importer of JSON is one of them.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lanescope/model/trace.h"

namespace lanescope::format {

class SubTracks {
 public:
  struct Row {
    TrackId track{};
    std::uint32_t number = 0;  // from 1; 0 would be the track itself
    std::int64_t tid = 0;      // a number that no track of the process has
  };
  // Finds the overlaps in threads and streams. O(slices log slices). Memory: 8 bytes for each moved slice
  // and, while it runs, 12 bytes for each slice of the largest track.
  explicit SubTracks(const Trace& trace);

  std::span<const Row> rows() const { return rows_; }
  std::size_t moved_count() const { return moved_.size(); }
  // The place in rows() of a slice that moves. Nothing: it stays.
  std::optional<std::uint32_t> row_of(std::uint32_t slice) const;
  // The same for the slice of `track` that begins at `ns`, such as the slice at an arrow's end.
  std::optional<std::uint32_t> row_at(const Trace& trace, TrackId track, std::int64_t ns) const;

 private:
  std::vector<Row> rows_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> moved_;  // slice, row; in order of the slice
};

}  // namespace lanescope::format
