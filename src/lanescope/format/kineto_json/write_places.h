// The JSON text of an event's track and category, made once because many events repeat it:
// ,"pid":...,"tid":... and ,"cat":"...".
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/codec/json_text.h"
#include "lanescope/format/kineto_json/sub_tracks.h"
#include "lanescope/format/kineto_json/write_values.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

// Borrows the Trace and the values. Any thread, once made.
class EventPlaces {
 public:
  // `moves_overlaps`: as in WriteOptions.
  EventPlaces(const Trace& trace, const JsonValues& values, bool moves_overlaps)
      : trace_(trace), values_(values), for_perfetto_(moves_overlaps) {
    for (const Category& category : trace.categories()) {
      std::string& fragment = categories_.emplace_back();
      if (category.text == kNone<StringId>) continue;
      fragment = ",\"cat\":\"";
      codec::append_escaped_json(fragment, trace.text(category.text));
      fragment += '"';
    }
    for (const Track& track : trace.tracks()) tracks_.push_back(track_fragment(track));
    if (!moves_overlaps) return;
    add_sub_tracks();
    shift_ns_ = shift_for_doubles();
  }

  // Subtract this from the times of events and add it to the trace's base time. 0 for most traces.
  std::int64_t shift_ns() const { return shift_ns_; }

  const std::string& category(CategoryId id) const { return categories_[raw(id)]; }
  const std::string& of(TrackId id) const { return tracks_[raw(id)]; }
  // The further rows for slices that overlap others; null: overlaps are not moved. Below, nothing means
  // that the slice stays on its track.
  const SubTracks* sub_tracks() const { return sub_tracks_ ? &*sub_tracks_ : nullptr; }
  const std::string& of_row(std::size_t row) const { return sub_places_[row]; }
  std::optional<std::uint32_t> row_of(std::uint32_t slice) const {
    return sub_tracks_ ? sub_tracks_->row_of(slice) : std::nullopt;
  }
  std::optional<std::uint32_t> row_at(TrackId track, std::int64_t ns) const {
    return sub_tracks_ ? sub_tracks_->row_at(trace_, track, ns) : std::nullopt;
  }

 private:
  std::string track_fragment(const Track& track) const {
    std::string fragment = ",\"pid\":";
    values_.append_scalar(fragment, trace_.process(track.process).pid);
    if (track.kind == TrackKind::kThread || track.kind == TrackKind::kStream) {
      fragment += ",\"tid\":";
      values_.append_scalar(fragment, read_tid(track.tid));
    } else if (track.kind == TrackKind::kAsync) {
      fragment += ",\"tid\":0,\"id\":";
      values_.append_scalar(fragment, track.tid);
    }
    return fragment;
  }
  // Older torch wrote the low 32 bits of a thread's address as a signed number. Perfetto reads a negative tid as no tid and puts the
  // slices on the first thread of the process, so the number is written unsigned.
  Scalar read_tid(const Scalar& tid) const {
    if (!for_perfetto_ || tid.is_text || tid.number >= 0 || tid.number < INT32_MIN) return tid;
    return {false, static_cast<std::int64_t>(static_cast<std::uint32_t>(tid.number))};
  }
  void add_sub_tracks() {
    sub_tracks_.emplace(trace_);
    for (const SubTracks::Row& row : sub_tracks_->rows()) {
      Track track = trace_.track(row.track);
      track.tid = {false, row.tid, kNone<StringId>};
      sub_places_.push_back(track_fragment(track));
    }
  }

  // Perfetto reads microseconds as a double, which rounds times from 2^53 ns (104 days) on. Slices that only touch then overlap: by
  // up to 128 ns in microseconds since 1970.
  std::int64_t shift_for_doubles() const {
    constexpr std::int64_t kExactNs = std::int64_t{1} << 53U;
    constexpr std::int64_t kSecondNs = 1'000'000'000;
    std::int64_t first = INT64_MAX, last = INT64_MIN, base = 0;
    const auto see = [&](std::int64_t ns) {
      first = std::min(first, ns);
      last = std::max(last, ns);
    };
    for (const std::int64_t ns : trace_.slices().start_ns) see(ns);
    for (const std::int64_t ns : trace_.instants().time_ns) see(ns);
    for (const std::int64_t ns : trace_.counters().time_ns) see(ns);
    if (first > last || last < kExactNs || first <= 0) return 0;
    const std::int64_t shift = first - first % kSecondNs;
    return __builtin_add_overflow(trace_.base_time_ns(), shift, &base) ? 0 : shift;
  }

  const Trace& trace_;
  const JsonValues& values_;
  const bool for_perfetto_;
  std::int64_t shift_ns_ = 0;
  std::vector<std::string> categories_, tracks_;
  std::optional<SubTracks> sub_tracks_;
  std::vector<std::string> sub_places_;  // of its rows
};

}  // namespace lanescope::format
