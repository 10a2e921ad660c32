// What only Chrome's trace format has: slices in two halves (B and E, b and e); arrows in two halves
// or more (s, t, f); places as a pid and a tid, without saying whether that is a thread or a stream.
// Joins them into whole slices and arrows on typed tracks.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "lanescope/format/kineto_json/pair_arrows.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// Borrows the builder; one thread, except finish(). Counts what has no partner: kEndWithoutBegin, kBeginWithoutEnd,
// kOrphanFlow. Memory: 40 bytes a half slice and 32 a half arrow, until finish().
class ChromeEvents {
 public:
  explicit ChromeEvents(TraceBuilder& builder) : builder_(builder) {}

  // The thread, or for device rows the stream, with that pid and tid; made on first use.
  TrackId track(const Scalar& pid, const Scalar& tid, bool on_stream);
  // The place of an arrow's end, or of an E: the stream with that pid and tid if there is one, now
  // or later; else the thread.
  TrackId point_track(const Scalar& pid, const Scalar& tid);

  // Each is one event of the file, in its order.
  void add_begin(TrackId track, CategoryId category, StringId name, std::int64_t time_ns,
                 ArgsId args);
  // Ends the innermost open begin of the same pid and tid, on their thread or their stream. With a
  // `name` (not kNone): the innermost one with that name.
  void add_end(TrackId track, StringId name, std::int64_t time_ns, ArgsId args);
  // phase: b, n or e, or their older spelling S, T or p, F.
  void add_async(char phase, TrackId async_track, CategoryId category, StringId name,
                 std::int64_t time_ns, ArgsId args);
  // phase: 's' start, 't' step, 'f' end.
  void add_flow(char phase, TrackId track, CategoryId category, StringId name, const Scalar& id,
                std::int64_t time_ns, bool binds_enclosing);

  // With the rough number of halves of arrows to come, their list need not grow step by step.
  void expect_flows(std::size_t count) { flow_points_.reserve(count); }
  std::size_t flow_count() const { return flow_points_.size(); }

  // They name the thread and the stream with that pid and tid, met before or later.
  void set_thread_name(const Scalar& pid, const Scalar& tid, StringId name);
  void set_thread_sort_index(const Scalar& pid, const Scalar& tid, std::int64_t index);
  // Calls each(pid, tid, name) for the names set up to now, in their order.
  template <typename Each>
  void each_thread_name(const Each& each) const {
    for (const ThreadLabel& label : labels_)
      if (label.name != kNone<StringId>) each(label.pid, label.tid, label.name);
  }

  // Gives the joined slices, arrows, names and steps to the builder. Once, after the last event. Up to `threads`, the caller's
  // among them, join arrows; the result is the same for any number.
  void finish(unsigned threads = 1);

 private:
  struct OpenEvent {
    std::int64_t time_ns;
    TrackId track;
    CategoryId category;
    char phase;
    StringId name;
    ArgsId args;
    std::uint32_t event_index;
  };
  struct ThreadLabel {
    Scalar pid, tid;
    StringId name = kNone<StringId>;
    std::optional<std::int64_t> sort_index;
  };

  void number_stream(TrackId stream);
  std::int64_t last_time_ns() const;
  std::vector<TrackId> pairing_tracks() const;  // for each track; for a stream, the thread with its
                                                // pid and tid
  void pair_begin_end(std::vector<OpenEvent>& events);
  void pair_async();
  ArgsId merge_args(ArgsId first, ArgsId second);
  void apply_thread_labels();

  TraceBuilder& builder_;
  std::vector<OpenEvent> begin_end_;
  std::vector<OpenEvent> async_;
  std::vector<ArrowPoint> flow_points_;
  std::vector<ThreadLabel> labels_;
  std::unordered_set<std::uint32_t> point_only_tracks_;  // threads known only from points so far
};

}  // namespace lanescope::format
