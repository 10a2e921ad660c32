// Which slices are rows of torch's list, in which order, and under which names: rule 1 and the order of
// rule 4 of docs/definitions/key_averages.md. Private to torch_event*.cpp and averages_by_track.cpp.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/torch_events.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// Where a row lies in the list.
struct EventKey {
  std::int64_t start_ns = 0, end_ns = 0;
  SliceId slice = kNone<SliceId>;
};

// As torch shows a name: demangled; ProfilerStep#N is ProfilerStep*.
std::string shown_name(std::string_view name);
// "aten::add.Tensor" -> "aten::add" and "Tensor". No overload: the text and an empty one.
std::pair<std::string_view, std::string_view> operator_text(std::string_view text);

constexpr bool is_annotation(CategoryKind kind) {
  return kind == CategoryKind::kUserAnnotation || kind == CategoryKind::kGpuUserAnnotation;
}

// Borrows the trace. Once it is made, each call takes constant time. Any thread.
class TorchEventRows {
 public:
  TorchEventRows(const Trace& trace, TableStyle style, bool own_frames);

  const std::string& device() const { return device_; }  // as TorchEvents
  TrackId main_track() const { return main_track_; }
  bool is_own() const { return is_own_; }
  bool has_python_frames() const { return has_python_frames_; }
  // How much longer GPU annotations are drawn at each end.
  std::int64_t tick_ns() const { return tick_ns_; }

  // Device work that was launched before the trace is no row of kLanescope. Counts it. `launch`: its API call;
  // `counts`: of the trace.
  bool is_left_out(SliceId device_work, SliceId launch, const LaunchCounts& counts,
                   TorchEventsNotes& notes) const;
  // All other rules. Counts Python frames that are left out.
  bool is_row(SliceId id, TorchEventsNotes& notes) const;

  bool is_on_device(SliceId id) const {
    return is_on_stream(trace_.kind(id)) || trace_.track(id).kind == TrackKind::kStream;
  }
  bool is_async(SliceId id) const {
    return trace_.track(id).kind == TrackKind::kAsync || is_unfinished(id);
  }

  EventKey key_of(SliceId id) const;
  // Rule 4's order. Ties (equal start and end) keep the collector's order: operators by "Ev Idx",
  // then the rest.
  bool before(const EventKey& a, const EventKey& b) const {
    if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
    if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;
    return is_collected_before(a.slice, b.slice);
  }

 private:
  bool is_marked_as_early(SliceId id) const;
  bool is_extra_annotation(SliceId id) const;
  bool is_unfinished(SliceId id) const;
  bool is_collected_before(SliceId a, SliceId b) const;

  const Trace& trace_;
  const TableStyle style_;
  std::string device_;
  TrackId main_track_ = kNone<TrackId>;
  bool is_own_ = false;
  bool has_python_frames_ = false;
  std::int64_t tick_ns_ = 1;
  std::int64_t first_step_ns_;
  StringId finished_, launches_;
  std::vector<bool> hidden_;  // one a string
};

}  // namespace lanescope::analysis
