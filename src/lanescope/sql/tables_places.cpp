// Tables of the places where events are: tracks, threads, streams, processes.
#include <array>

#include "lanescope/sql/tables.h"

namespace lanescope::sql {
namespace {

using Rows = TraceRows;
using Id = std::uint32_t;

const Track& track(Rows& r, Id i) { return r.trace().tracks()[i]; }

Cell id(Rows&, Id i) { return Cell::of(i); }
Cell type(Rows& r, Id i) {
  switch (track(r, i).kind) {
    case TrackKind::kThread:
      return Cell::of_text("thread");
    case TrackKind::kStream:
      return Cell::of_text("stream");
    case TrackKind::kAsync:
      return Cell::of_text("async");
    case TrackKind::kCounter:
      return Cell::of_text("counter");
  }
  return {};
}
Cell name(Rows& r, Id i) { return text_cell(r.trace(), track(r, i).name); }
Cell upid(Rows& r, Id i) { return id_cell(track(r, i).process); }
Cell tid(Rows& r, Id i) { return scalar_cell(r.trace(), track(r, i).tid); }
Cell device(Rows& r, Id i) { return optional_cell(track(r, i).device); }
Cell stream(Rows& r, Id i) { return optional_cell(track(r, i).stream); }
Cell slice_count(Rows& r, Id i) { return Cell::of(track(r, i).slice_count); }

const Process& process(Rows& r, Id i) { return r.trace().processes()[i]; }
Cell pid(Rows& r, Id i) { return scalar_cell(r.trace(), process(r, i).pid); }
Cell process_name(Rows& r, Id i) { return text_cell(r.trace(), process(r, i).name); }
Cell labels(Rows& r, Id i) { return text_cell(r.trace(), process(r, i).labels); }

template <TrackKind kind>
std::vector<Id> tracks_of(Rows& r) {
  std::vector<Id> ids;
  for (Id i = 0; i < r.trace().tracks().size(); ++i)
    if (track(r, i).kind == kind) ids.push_back(i);
  return ids;
}
std::size_t track_count(Rows& r) { return r.trace().tracks().size(); }
std::size_t process_count(Rows& r) { return r.trace().processes().size(); }

using enum ColumnUse;
constexpr ColumnSource kName{"name", name, kKey};
constexpr ColumnSource kUpid{"upid", upid, kKey};
constexpr ColumnSource kDevice{"device", device, kKey};
constexpr ColumnSource kStreamColumn{"stream", stream, kKey};
constexpr ColumnSource kSliceCount{"slice_count", slice_count};

constexpr std::array kTrackColumns{ColumnSource{"id", id, kId},
                                   ColumnSource{"type", type, kKey},
                                   kName,
                                   kUpid,
                                   ColumnSource{"tid", tid},
                                   kDevice,
                                   kStreamColumn,
                                   kSliceCount};
constexpr std::array kThread{ColumnSource{"utid", id, kId}, ColumnSource{"tid", tid}, kName, kUpid,
                             kSliceCount};
constexpr std::array kProcess{ColumnSource{"upid", id, kId}, ColumnSource{"pid", pid},
                              ColumnSource{"name", process_name, kKey},
                              ColumnSource{"labels", labels}};
constexpr std::array kStream{
    ColumnSource{"track_id", id, kId}, kDevice, kStreamColumn, kName, kUpid, kSliceCount};

constexpr std::array kSources{
    TableSource{"track", kTrackColumns, nullptr, track_count},
    TableSource{"thread", kThread, tracks_of<TrackKind::kThread>, nullptr},
    TableSource{"process", kProcess, nullptr, process_count},
    TableSource{"stream", kStream, tracks_of<TrackKind::kStream>, nullptr},
};

}  // namespace

std::span<const TableSource> place_sources() { return kSources; }

}  // namespace lanescope::sql
